#include "core/data/tables/csv_source.h"

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/data/opening.h"
#include "core/data/tables/csv.h"
#include "core/data/tables/other_rows.h"
#include "core/data/tables/text_rows.h"
#include "core/data/tokenizer.h"
#include "core/tokenizers/tokenizer.h"

namespace pmaptrain::data {

Declaration<Csv> Csv::declaration() {
  return declare::kind<Csv>(
      {.path = "csv",
       .meaning = "Tables of text (CSV, RFC 4180), plain or gzip: one row per example, columns by name. Blanks around "
                  "the names of columns and around numbers are dropped; in other cells they count.",
       .example = "source: {csv: {train: train.csv, test: test.csv, target: label}}\n"
                  "source: {csv: {train: [a.csv, b.csv], inputs: [age, city], target: price, categorical: [city]}}"},
      field(&Csv::train, {.path = "train",
                          .need = Need::required,
                          .meaning = "The file of the training split, or a list of files, whose rows follow one "
                                     "another. Columns are found by their names in the header.",
                          .example = "train: [a.csv, b.csv]"}),
      field(&Csv::validation, split_key(Split::validation, "validation: v.csv")),
      field(&Csv::test, split_key(Split::test, "test: t.csv")),
      field(&Csv::inputs, {.path = "inputs",
                           .meaning = "The columns that are the inputs, in this order.",
                           .example = "inputs: [age, city]",
                           .fallback_text = "all columns but target and weight"}),
      field(&Csv::exclude, {.path = "exclude",
                            .fallback = "[]",
                            .meaning = "Columns that are no inputs, where inputs does not name these: identifiers, or "
                                       "what is not known when a prediction is made.",
                            .example = "exclude: [id]"}),
      field(&Csv::target, {.path = "target",
                           .need = Need::required,
                           .meaning = "The column that is predicted. Text is classes, in the order of classes; "
                                      "integers are labels from 0, or numbers for a loss of numbers, which "
                                      "takes several columns as well. With sigmoid_cross_entropy several columns are "
                                      "labels, each 0 or 1, no or yes, or False or True.",
                           .example = "target: label\ntarget: [width, height]"}),
      field(&Csv::classes,
            {.path = "classes",
             .fallback = "[]",
             .meaning = "The classes of the target in their order, texts or whole numbers, of all splits. Of two, the "
                        "second is the one of which f1, precision, recall, roc_auc, average_precision and thresholds "
                        "are, and which a single logit predicts. Without the list: the sorted texts of the training "
                        "split.",
             .example = "classes: [ok, fraud]\nclasses: [-1, 1]",
             .fallback_text = "sorted"}),
      field(&Csv::label_separator,
            {.path = "label_separator",
             .meaning = "The cells of the target are lists of labels, such as red;round, with this text between two, "
                        "for sigmoid_cross_entropy with an output for each label: the sorted labels of the training "
                        "split. An empty cell has none.",
             .example = "label_separator: \";\"",
             .fallback_text = "none"}),
      field(&Csv::weight, {.path = "weight",
                           .meaning = "The column of the weights of examples: loss, gradient and metrics are weighted "
                                      "means.",
                           .example = "weight: w"}),
      field(&Csv::header, {.path = "header",
                           .meaning = "Whether the first line has the names of the columns; false: columns are named "
                                      "by their number, from 0.",
                           .example = "header: false"}),
      field(&Csv::delimiter, {.path = "delimiter",
                              .fallback = "\",\"",
                              .meaning = "The character between two cells.",
                              .example = "delimiter: \"\\t\""}),
      field(&Csv::encoding,
            {.path = "encoding",
             .meaning = "How the characters of the files are stored. latin-1 is ISO 8859-1; windows-1252 is what "
                        "Excel writes in Western Europe and America; utf-16 is in the order of bytes that the file "
                        "states at its begin. The names of classes and categories become UTF-8.",
             .example = "encoding: latin-1"}),
      field(&Csv::categorical,
            {.path = "categorical",
             .fallback = "[]",
             .meaning = "Inputs that are categories, text or integers: each becomes one column for "
                        "each category of the training split, of which one is 1 and the others 0; or, where "
                        "the model begins with table_embedding, one row of a table.",
             .example = "categorical: [city]"}),
      field(&Csv::missing, {.path = "missing",
                            .fallback = "error",
                            .words = {"error", "mean", "fill"},
                            .item_words = {"error", "mean", "category"},
                            .meaning = "Empty cells of inputs; among numbers also NA, NaN and the like. error: refuse "
                                       "them; mean: among numbers, the mean of the column in the training split; "
                                       "fill: the same, and among categories one of their own. Or by column, the "
                                       "others as error: {age: mean, city: category}.",
                            .example = "missing: fill\nmissing: {age: mean, city: category}"}),
      field(&Csv::missing_values, {.path = "missing_values",
                                   .fallback = "[]",
                                   .meaning = "Texts that mean a missing number in inputs of numbers, beside empty "
                                              "cells, NA, NaN and the like; missing says what becomes of them.",
                                   .example = "missing_values: [\"?\", \"-\"]"}),
      field(&Csv::missing_categories,
            {.path = "missing_categories",
             .fallback = "[]",
             .meaning = "Texts that mean an empty cell in inputs that are categories; missing says what becomes of it. "
                        "Others, also NA, are categories.",
             .example = "missing_categories: [NA, \"?\"]"}),
      field(&Csv::unknown, {.path = "unknown",
                            .meaning = "Categories that the training split does not have. error: refuse them; ignore: "
                                       "take them as none, zeros in all columns of the input or row 0 of a table of "
                                       "table_embedding, and count them.",
                            .example = "unknown: ignore"}),
      field(&Csv::on_error, rows_on_error_key()),
      field(&Csv::text, {.path = "text",
                         .meaning = "A column of texts, whose tokens by data.tokenizer are the inputs: sequences of "
                                    "different lengths, for a model that begins with an embedding. Other columns are "
                                    "no inputs then.",
                         .example = "text: review"}),
      field(&Csv::max_length, {.path = "max_length",
                               .low = 1,
                               .high = 1e6,
                               .meaning = "Of text, the number of tokens at most; longer ones are cut.",
                               .example = "max_length: 256",
                               .fallback_text = "256"}),
      field(&Csv::truncate, {.path = "truncate",
                             .meaning = "Of text, what is cut off where it is too long: right, its end; left, its "
                                        "beginning.",
                             .example = "truncate: left",
                             .fallback_text = "right"}),
      field(&Csv::special_tokens,
            {.path = "special_tokens",
             .meaning = "Of text, whether the tokens that the tokenizer puts around each text are there.",
             .example = "special_tokens: false",
             .fallback_text = "true"}));
}

// The tokens of a column of texts in place of other inputs.
static void read_texts_of(const Csv& of, const CsvSource& csv, const Opening& opening, Source& source) {
  std::map<Split, std::vector<std::string>> texts;
  for (const auto& [split, table] : csv.splits) texts[split] = table->take_documents();
  if (opening.tokenizer != nullptr) {
    source.tokenizer = opening.tokenizer->open([&](const auto& take) {
      for (const std::string& text : texts[Split::train]) take(text);
    });
  }
  source.encoding.tokenizer = source.tokenizer != nullptr ? hash_of(*source.tokenizer) : std::string();
  for (const auto& [split, table] : csv.splits) {
    TokenRows rows = tokens_of(texts.at(split), source.tokenizer.get(), of);
    source.notes.push_back(note_on_lengths(rows, of, name_of(split)));
    source.of(split) = with_tokens(table, std::move(rows), of, source.tokenizer);
  }
}

Source Csv::open(const Opening& opening) const {
  CsvSource csv = open_csv(
      *this, [&](Split split) { return opening.wants(split); }, opening.known,
      {opening.numeric_targets, opening.names_classes, opening.group, opening.numbers_categories}, opening.left_out);
  Source source;
  std::optional<Split> first;
  for (const auto& [split, table] : csv.splits) {
    source.of(split) = table;
    if (!first) first = split;
    check_equal("targets", *first, source.of(*first)->target(), split, table->target());
  }
  source.encoding = std::move(csv.encoding);
  source.notes = std::move(csv.notes);
  if (const auto trained = csv.splits.find(Split::train); trained != csv.splits.end()) {
    source.groups = {trained->second, &trained->second->groups()};
  }
  if (text) {
    read_texts_of(*this, csv, opening, source);
    return source;
  }
  source.learn = [tables = std::move(csv.splits), missing = missing](Source& of) {
    const std::vector<std::optional<double>> means = tables.at(Split::train)->means_of(*of.train, of.encoding, missing);
    for (std::size_t i = 0; i < means.size(); ++i) of.encoding.columns[i].missing = means[i];
    for (const auto& entry : tables) entry.second->fill_missing(of.encoding);
    note_filled(tables, of.encoding, of.notes);
  };
  return source;
}

}  // namespace pmaptrain::data
