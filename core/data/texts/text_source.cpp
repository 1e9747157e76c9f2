#include "core/data/texts/text_source.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "core/data/opening.h"
#include "core/data/texts/text.h"
#include "core/data/texts/text_files.h"

namespace pmaptrain::data {

Declaration<TextFiles> TextFiles::declaration() {
  return declare::kind<TextFiles>(
      {.path = "text",
       .meaning = "Sequences of tokens. Example i is the tokens from i * length on, its targets are the tokens that "
                  "follow each of them. For training, all windows of an epoch begin at one random offset below length "
                  "(0 with shuffle: false). data.validation takes the end of the text.",
       .example = "source: {text: {train: [a.txt, b.txt], validation: c.txt, length: 64}}"},
      declare::field(
          &TextFiles::train,
          {.path = "train",
           .need = Need::required,
           .meaning = "The file of the training split, or a list of files, which follow one another. Of a folder, all "
                      "files below it are read in the order of their paths, without empty files, links, and names "
                      "that begin with a dot. Gzip files are decompressed. Those called .jsonl or .ndjson, "
                      "perhaps with .gz, have one JSON object a line, and its field is the text; also .json files that "
                      "have an object a line.",
           .example = "train: [a.txt, b.txt]\ntrain: corpus\ntrain: [a.txt.gz, b.jsonl]"}),
      declare::field(&TextFiles::validation, split_key(Split::validation, "validation: c.txt")),
      declare::field(&TextFiles::test, split_key(Split::test, "test: d.txt")),
      declare::field(&TextFiles::tokens,
                     {.path = "tokens",
                      .meaning = "bytes: each byte is a token, 0 to 255. uint16: the files are flat arrays of "
                                 "16-bit integers, little-endian.",
                      .example = "tokens: uint16"}),
      declare::field(&TextFiles::length, {.path = "length",
                                          .need = Need::required,
                                          .low = 1,
                                          .high = 1e6,
                                          .meaning = "Number of tokens of an example.",
                                          .example = "length: 64"}),
      declare::field(
          &TextFiles::end_token,
          {.path = "end_token",
           .low = 0,
           .high = 65535,
           .meaning = "A token that is put after each document: after each file, and of JSON lines after each line. "
                      "With tokens: bytes at most 255; with uint16 not where the file ends with it. predict "
                      "--prompt stops at it.",
           .example = "end_token: 0",
           .fallback_text = "none"}),
      declare::field(&TextFiles::field,
                     {.path = "field",
                      .meaning = "Of JSON lines, the field of each object that is the text of a document.",
                      .example = "field: content",
                      .fallback_text = "text"}));
}

Source TextFiles::open(const Opening& opening) const {
  const std::map<Split, Files> splits = given(train, validation, test);
  Source source = open_splits(
      splits, opening, [&](const Files& files, Notes& notes) { return make_text(*this, files, notes, opening.place); });
  if (!opening.wants(Split::train) || splits.size() == 1) return source;
  const std::vector<TextFile> trained = list_text_files(train);
  for (const auto& [split, files] : splits) {
    if (split == Split::train || !opening.wants(split)) continue;
    std::string shared = text_of_shared(trained, list_text_files(files), name_of(split));
    if (shared.empty()) continue;
    source.warnings.push_back({"data",
                               opening.place,
                               std::move(shared),
                               fmt::format("{} metrics are better than those of new text; take files that are not "
                                           "trained on",
                                           name_of(split)),
                               {}});
  }
  return source;
}

}  // namespace pmaptrain::data
