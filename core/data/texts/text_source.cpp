#include "core/data/texts/text_source.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <utility>

#include "core/base/utf8.h"
#include "core/data/file.h"
#include "core/data/opening.h"
#include "core/data/texts/text.h"
#include "core/data/texts/text_files.h"
#include "core/data/tokenizer.h"
#include "core/tokenizers/tokenizer.h"

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
                      .meaning = "What the files have. bytes: texts, of which data.tokenizer makes tokens; without it "
                                 "each byte is one, 0 to 255. uint16, uint32: the tokens themselves, as flat arrays of "
                                 "integers, little-endian.",
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
           .meaning = "A token that is put after each document: after each file, and of JSON lines after each line. "
                      "Its number, or its text where there is a data.tokenizer. Without one, with tokens: bytes, at "
                      "most 255; with uint16 and uint32 not where the file ends with it. predict --prompt stops at it.",
           .example = "end_token: 0\nend_token: <|endoftext|>",
           .fallback_text = "none"}),
      declare::field(&TextFiles::field,
                     {.path = "field",
                      .meaning = "Of JSON lines, the field of each object that is the text of a document.",
                      .example = "field: content",
                      .fallback_text = "text"}));
}

std::optional<std::int64_t> TextFiles::end_id(const Tokenizer* tokenizer) const {
  if (!end_token) return std::nullopt;
  const auto refuse = [&](const std::string& message, const char* help) {
    throw Error(ExitStatus::usage, Diagnostic{"config", end_token->place, message, help, {}});
  };
  std::int64_t number = 0;
  const std::string& text = end_token->text;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size() && number >= 0;
  if (tokenizer != nullptr) {
    const std::optional<tokenizers::Id> id = is_number ? std::nullopt : tokenizer->id_of(text);
    if (!is_number && !id) {
      refuse(fmt::format("'{}' is no token of data.tokenizer", shown_name(text)),
             "`pmaptrain tokenize show --tokenizer FILE` lists its special tokens");
    }
    if (number >= tokenizer->size()) {
      refuse(fmt::format("end_token is {}, and data.tokenizer has tokens from 0 to {}", number, tokenizer->size() - 1),
             "`pmaptrain tokenize show --tokenizer FILE` lists its special tokens");
    }
    return id ? std::int64_t{*id} : number;
  }
  const std::int64_t most = tokens == Tokens::bytes ? 255 : tokens == Tokens::uint16 ? 65535 : 0x7fffffff;
  if (!is_number) {
    refuse(fmt::format("end_token is '{}', and without data.tokenizer tokens are numbers", shown_name(text)),
           "take a byte that the texts do not have, such as 0; or data.tokenizer: {file: tokenizer.json}");
  }
  if (number > most) {
    refuse(
        fmt::format("end_token is {}, but tokens: {} has the tokens 0 to {}", number, declare::word_of(tokens), most),
        "take a byte that the texts do not have, such as 0");
  }
  return number;
}

Source TextFiles::open(const Opening& opening) const {
  const std::map<Split, Files> splits = given(train, validation, test);
  std::shared_ptr<const Tokenizer> tokenizer;
  TextHashes hashes;
  if (opening.tokenizer != nullptr) {
    Notes ignored;  // they are those of reading the split
    std::vector<TextFile> files;
    if (!opening.tokenizer->learned_as().empty()) files = list_text_files(train);
    look_into(files, *this, ignored);
    tokenizer = tokenizer_for(*opening.tokenizer, files, field, opening.token_cache, hashes);
  }
  Source source = open_splits(splits, opening, [&](const Files& files, Notes& notes) {
    return make_text(*this, files, notes, opening.place, tokenizer.get(), opening.token_cache, &hashes);
  });
  source.encoding.tokenizer = tokenizer != nullptr ? hash_of(*tokenizer) : std::string();
  source.tokenizer = std::move(tokenizer);
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
