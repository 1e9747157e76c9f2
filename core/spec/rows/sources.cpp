// The rows of the sources of `data`.
#include "core/spec/rows/row.h"
#include "core/spec/types/axes.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/lists.h"
#include "core/spec/types/path.h"
#include "core/spec/types/word.h"

namespace pmaptrain::spec {

static auto row(Tag<FashionMnist>) {
  return alternative<FashionMnist>(
      {.path = "fashion_mnist",
       .meaning = "Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 in 10 classes, as Debian's "
                  "dataset-fashion-mnist installs them.",
       .example = "source: fashion_mnist"},
      option(&FashionMnist::dir, {.path = "dir",
                                  .type = Type::path,
                                  .meaning = "The folder of the four files.",
                                  .example = "dir: datasets/fashion-mnist"}));
}

static auto row(Tag<Idx>) {
  return alternative<Idx>(
      {.path = "idx",
       .meaning = "Files in MNIST's IDX format, plain or gzip.",
       .example = "source: {idx: {train: [images.gz, labels.gz], test: [test-images.gz, test-labels.gz]}}"},
      option(&Idx::train, {.path = "train",
                           .need = Need::required,
                           .meaning = "The files of inputs and of targets of the training split.",
                           .example = "train: [images.gz, labels.gz]"}),
      option(&Idx::validation, {.path = "validation",
                                .meaning = "The files of inputs and of targets of the validation split.",
                                .example = "validation: [val-images.gz, val-labels.gz]"}),
      option(&Idx::test, {.path = "test",
                          .meaning = "The files of inputs and of targets of the test split.",
                          .example = "test: [test-images.gz, test-labels.gz]"}));
}

static constexpr std::array<Word<Channels>, 4> words_of(Tag<Channels>) {
  return {
      {{"auto", Channels::automatic}, {"last", Channels::last}, {"none", Channels::none}, {"first", Channels::first}}};
}

std::string_view to_string(Channels channels) {
  for (const auto& [word, meant] : words_of(Tag<Channels>{})) {
    if (meant == channels) return word;
  }
  return "";
}

static auto row(Tag<Npz>) {
  return alternative<Npz>(
      {.path = "npz",
       .meaning = "NumPy archives: one file with separate arrays for each split, or one file per split with the same "
                  "array names in each. Where the model begins with embedding, integers of the inputs are tokens, and "
                  "integer targets of their shape are labels of their positions.",
       .example = "source: {npz: {file: f.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                  "source: {npz: {train: train.npz, test: test.npz, inputs: x, targets: y}}"},
      option(&Npz::file, {.path = "file",
                          .type = Type::path,
                          .meaning = "The archive that contains all splits.",
                          .example = "file: digits.npz"}),
      option(&Npz::train, {.path = "train",
                           .need = Need::required,
                           .meaning = "With file: the array names of the inputs and the targets of the training split. "
                                      "Without file: the archive of the training split.",
                           .example = "train: [x_train, y_train]"}),
      option(&Npz::validation, {.path = "validation",
                                .meaning = "As train, for the validation split.",
                                .example = "validation: [x_val, y_val]"}),
      option(&Npz::test,
             {.path = "test", .meaning = "As train, for the test split.", .example = "test: [x_test, y_test]"}),
      option(&Npz::inputs, {.path = "inputs",
                            .meaning = "Without file: the array name of the inputs in each archive.",
                            .example = "inputs: x"}),
      option(&Npz::targets, {.path = "targets",
                             .meaning = "Without file: the array name of the targets in each archive.",
                             .example = "targets: y"}),
      option(&Npz::channels,
             {.path = "channels",
              .meaning = "What the inputs of an array of three dimensions (N, A, B) are. last: sequences or signals "
                         "[A, B], with B channels; first: the same of A channels, transposed to [B, A] when they are "
                         "read; none: pictures [A, B, 1]. auto: none for 8-bit inputs, last for all others and before "
                         "embedding. The run says which, and its config has it.",
              .example = "channels: last"}));
}

static constexpr std::array<Word<Unknown>, 2> words_of(Tag<Unknown>) {
  return {{{"error", Unknown::error}, {"ignore", Unknown::ignore}}};
}

static constexpr std::array<Word<OnError>, 2> words_of(Tag<OnError>) {
  return {{{"error", OnError::error}, {"skip", OnError::skip}}};
}

static constexpr std::array<Word<TextEncoding>, 4> words_of(Tag<TextEncoding>) {
  return {{{"utf-8", TextEncoding::utf8},
           {"latin-1", TextEncoding::latin1},
           {"windows-1252", TextEncoding::windows1252},
           {"utf-16", TextEncoding::utf16}}};
}

static auto row(Tag<Csv>) {
  return alternative<Csv>(
      {.path = "csv",
       .meaning = "Tables of text (CSV, RFC 4180), plain or gzip: one row per example, columns by name. Blanks around "
                  "the names of columns and around numbers are dropped; in other cells they count.",
       .example = "source: {csv: {train: train.csv, test: test.csv, target: label}}\n"
                  "source: {csv: {train: [a.csv, b.csv], inputs: [age, city], target: price, categorical: [city]}}"},
      option(&Csv::train, {.path = "train",
                           .need = Need::required,
                           .meaning = "The file of the training split, or a list of files, whose rows follow one "
                                      "another. Columns are found by their names in the header.",
                           .example = "train: [a.csv, b.csv]"}),
      option(&Csv::validation,
             {.path = "validation", .meaning = "As train, for the validation split.", .example = "validation: v.csv"}),
      option(&Csv::test, {.path = "test", .meaning = "As train, for the test split.", .example = "test: t.csv"}),
      option(&Csv::inputs, {.path = "inputs",
                            .meaning = "The columns that are the inputs, in this order.",
                            .example = "inputs: [age, city]",
                            .fallback_text = "all columns but target and weight"}),
      option(&Csv::exclude, {.path = "exclude",
                             .fallback = "[]",
                             .meaning = "Columns that are no inputs, where inputs does not name these: identifiers, or "
                                        "what is not known when a prediction is made.",
                             .example = "exclude: [id]"}),
      option(&Csv::target, {.path = "target",
                            .need = Need::required,
                            .meaning = "The column that is predicted. Text is classes, in the order of classes; "
                                       "integers are labels from 0, or numbers for a loss of numbers, which "
                                       "takes several columns as well. With sigmoid_cross_entropy several columns are "
                                       "labels, each 0 or 1, no or yes, or False or True.",
                            .example = "target: label\ntarget: [width, height]"}),
      option(&Csv::classes,
             {.path = "classes",
              .fallback = "[]",
              .meaning = "The classes of the target in their order, texts or whole numbers, of all splits. Of two, the "
                         "second is the one of which f1, precision, recall, roc_auc, average_precision and thresholds "
                         "are, and which a single logit predicts. Without the list: the sorted texts of the training "
                         "split.",
              .example = "classes: [ok, fraud]\nclasses: [-1, 1]",
              .fallback_text = "sorted"}),
      option(&Csv::label_separator,
             {.path = "label_separator",
              .meaning = "The cells of the target are lists of labels, such as red;round, with this text between two, "
                         "for sigmoid_cross_entropy with an output for each label: the sorted labels of the training "
                         "split. An empty cell has none.",
              .example = "label_separator: \";\"",
              .fallback_text = "none"}),
      option(&Csv::weight, {.path = "weight",
                            .meaning = "The column of the weights of examples: loss, gradient and metrics are weighted "
                                       "means.",
                            .example = "weight: w"}),
      option(&Csv::header, {.path = "header",
                            .meaning = "Whether the first line has the names of the columns; false: columns are named "
                                       "by their number, from 0.",
                            .example = "header: false"}),
      option(&Csv::delimiter, {.path = "delimiter",
                               .fallback = "\",\"",
                               .meaning = "The character between two cells.",
                               .example = "delimiter: \"\\t\""}),
      option(&Csv::encoding,
             {.path = "encoding",
              .meaning = "How the characters of the files are stored. latin-1 is ISO 8859-1; windows-1252 is what "
                         "Excel writes in Western Europe and America; utf-16 is in the order of bytes that the file "
                         "states at its begin. The names of classes and categories become UTF-8.",
              .example = "encoding: latin-1"}),
      option(&Csv::categorical, {.path = "categorical",
                                 .fallback = "[]",
                                 .meaning = "Inputs that are categories, text or integers: each becomes one column for "
                                            "each category of the training split, of which one is 1 and the others 0.",
                                 .example = "categorical: [city]"}),
      option(&Csv::missing, {.path = "missing",
                             .fallback = "error",
                             .words = {"error", "mean", "fill"},
                             .item_words = {"error", "mean", "category"},
                             .meaning = "Empty cells of inputs; among numbers also NA, NaN and the like. error: refuse "
                                        "them; mean: among numbers, the mean of the column in the training split; "
                                        "fill: the same, and among categories one of their own. Or by column, the "
                                        "others as error: {age: mean, city: category}.",
                             .example = "missing: fill\nmissing: {age: mean, city: category}"}),
      option(&Csv::missing_values, {.path = "missing_values",
                                    .fallback = "[]",
                                    .meaning = "Texts that mean a missing number in inputs of numbers, beside empty "
                                               "cells, NA, NaN and the like; missing says what becomes of them.",
                                    .example = "missing_values: [\"?\", \"-\"]"}),
      option(
          &Csv::missing_categories,
          {.path = "missing_categories",
           .fallback = "[]",
           .meaning = "Texts that mean an empty cell in inputs that are categories; missing says what becomes of it. "
                      "Others, also NA, are categories.",
           .example = "missing_categories: [NA, \"?\"]"}),
      option(&Csv::unknown, {.path = "unknown",
                             .meaning = "Categories that the training split does not have. error: refuse them; ignore: "
                                        "take them as none, zeros in all columns of the input, and count them.",
                             .example = "unknown: ignore"}),
      option(&Csv::on_error,
             {.path = "on_error",
              .meaning = "Rows that cannot be read. error: refuse them; skip: leave them out, before validation takes "
                         "its share, as long as they are no more than 1 % of a split, or one row.",
              .example = "on_error: skip"}));
}

static auto row(Tag<ImageFolder>) {
  return alternative<ImageFolder>(
      {.path = "image_folder",
       .meaning = "Folders of PNG and JPEG files, one folder for each class. The names of the folders, sorted, are the "
                  "classes. Images are decoded to 8 bits; if all training images are grey they have 1 channel, "
                  "else 3. Alpha channels and colour profiles are dropped, the orientation in EXIF data is applied.",
       .example = "source: {image_folder: {train: photos/train, test: photos/test, size: [32, 32]}}"},
      option(&ImageFolder::train, {.path = "train",
                                   .type = Type::path,
                                   .need = Need::required,
                                   .meaning = "The folder that contains one folder for each class.",
                                   .example = "train: photos/train"}),
      option(&ImageFolder::validation, {.path = "validation",
                                        .type = Type::path,
                                        .meaning = "As train, for the validation split, with the same classes.",
                                        .example = "validation: photos/validation"}),
      option(&ImageFolder::test, {.path = "test",
                                  .type = Type::path,
                                  .meaning = "As train, for the test split, with the same classes.",
                                  .example = "test: photos/test"}),
      option(
          &ImageFolder::size,
          {.path = "size",
           .low = 1,
           .high = 65535,
           .length = 2,
           .meaning = "The height and the width that images are resized to: bilinear, with antialiasing, as Pillow's "
                      "BILINEAR. The ratio of the sides is not kept.",
           .example = "size: [32, 32]",
           .fallback_text = "the size of the images, which must be the same for all"}),
      option(&ImageFolder::on_error,
             {.path = "on_error",
              .meaning = "Files that cannot be read. error: refuse them; skip: leave them out, before validation takes "
                         "its share, as long as they are no more than 1 % of a split, or one file.",
              .example = "on_error: skip"}));
}

static auto row(Tag<Cifar10>) {
  return alternative<Cifar10>(
      {.path = "cifar10",
       .meaning = "CIFAR-10, the binary version: 50,000 training and 10,000 test images of 32x32 in 10 classes.",
       .example = "source: {cifar10: {dir: cifar-10-batches-bin}}"},
      option(&Cifar10::dir,
             {.path = "dir",
              .type = Type::path,
              .need = Need::required,
              .meaning = "The folder of data_batch_1.bin to data_batch_5.bin, test_batch.bin and batches.meta.txt.",
              .example = "dir: cifar-10-batches-bin"}));
}

static constexpr std::array<Word<Tokens>, 2> words_of(Tag<Tokens>) {
  return {{{"bytes", Tokens::bytes}, {"uint16", Tokens::uint16}}};
}

static auto row(Tag<TextFiles>) {
  return alternative<TextFiles>(
      {.path = "text",
       .meaning = "Sequences of tokens. Example i is the tokens from i * length on, its targets are the tokens that "
                  "follow each of them. For training, all windows of an epoch begin at one random offset below length "
                  "(0 with shuffle: false). data.validation takes the end of the text.",
       .example = "source: {text: {train: [a.txt, b.txt], validation: c.txt, length: 64}}"},
      option(
          &TextFiles::train,
          {.path = "train",
           .need = Need::required,
           .meaning = "The file of the training split, or a list of files, which follow one another. Of a folder, all "
                      "files below it are read in the order of their paths, without empty files, links, and names "
                      "that begin with a dot. Gzip files are decompressed. Those called .jsonl or .ndjson, "
                      "perhaps with .gz, have one JSON object a line, and its field is the text; also .json files that "
                      "have an object a line.",
           .example = "train: [a.txt, b.txt]\ntrain: corpus\ntrain: [a.txt.gz, b.jsonl]"}),
      option(&TextFiles::validation,
             {.path = "validation", .meaning = "As train, for the validation split.", .example = "validation: c.txt"}),
      option(&TextFiles::test, {.path = "test", .meaning = "As train, for the test split.", .example = "test: d.txt"}),
      option(&TextFiles::tokens,
             {.path = "tokens",
              .meaning = "bytes: each byte is a token, 0 to 255. uint16: the files are flat arrays of "
                         "16-bit integers, little-endian.",
              .example = "tokens: uint16"}),
      option(&TextFiles::length, {.path = "length",
                                  .need = Need::required,
                                  .low = 1,
                                  .high = 1e6,
                                  .meaning = "Number of tokens of an example.",
                                  .example = "length: 64"}),
      option(&TextFiles::end_token,
             {.path = "end_token",
              .low = 0,
              .high = 65535,
              .meaning = "A token that is put after each document: after each file, and of JSON lines after each line. "
                         "With tokens: bytes at most 255; with uint16 not where the file ends with it. predict "
                         "--prompt stops at it.",
              .example = "end_token: 0",
              .fallback_text = "none"}),
      option(&TextFiles::field, {.path = "field",
                                 .meaning = "Of JSON lines, the field of each object that is the text of a document.",
                                 .example = "field: content",
                                 .fallback_text = "text"}));
}

static auto row(Tag<SyntheticLinear>) {
  return alternative<SyntheticLinear>(
      {.path = "synthetic_linear",
       .meaning = "Linear regression: true weights, true bias, inputs and noise are drawn from normal distributions. "
                  "At its end, the run prints the learned and the true parameters.",
       .example = "source: {synthetic_linear: {features: 5, examples_per_device: 100, noise: 0.1}}"},
      option(&SyntheticLinear::features,
             {.path = "features", .low = 1, .meaning = "Number of features of an example.", .example = "features: 5"}),
      option(&SyntheticLinear::examples_per_device, {.path = "examples_per_device",
                                                     .low = 1,
                                                     .meaning = "Number of examples per logical device.",
                                                     .example = "examples_per_device: 100"}),
      option(&SyntheticLinear::noise, {.path = "noise",
                                       .high = unbounded,
                                       .meaning = "Standard deviation of the noise added to the targets.",
                                       .example = "noise: 0.1"}));
}

static auto row(Tag<SyntheticImages>) {
  return alternative<SyntheticImages>(
      {.path = "synthetic_images",
       .meaning = "Synthetic images: a random pattern for each class plus normal noise. Each image is generated from "
                  "the seed when it is read.",
       .example = "source: {synthetic_images: {height: 32, width: 32, channels: 3, train: 50000}}"},
      option(&SyntheticImages::height,
             {.path = "height", .low = 1, .high = 65536, .meaning = "Height of an image.", .example = "height: 32"}),
      option(&SyntheticImages::width,
             {.path = "width", .low = 1, .high = 65536, .meaning = "Width of an image.", .example = "width: 32"}),
      option(&SyntheticImages::channels,
             {.path = "channels", .low = 1, .high = 65536, .meaning = "Number of channels.", .example = "channels: 3"}),
      option(&SyntheticImages::classes, {.path = "classes",
                                         .low = 2,
                                         .high = 1e6,
                                         .meaning = "Number of classes; labels are 0 to classes - 1.",
                                         .example = "classes: 10"}),
      option(&SyntheticImages::train,
             {.path = "train", .low = 1, .meaning = "Number of training examples.", .example = "train: 50000"}),
      option(&SyntheticImages::test, {.path = "test",
                                      .low = 0,
                                      .meaning = "Number of test examples; 0 for no test split.",
                                      .example = "test: 10000"}),
      option(&SyntheticImages::noise, {.path = "noise",
                                       .high = unbounded,
                                       .meaning = "Standard deviation of the noise.",
                                       .example = "noise: 0.3"}));
}

static auto row(Tag<Values>) {
  return alternative<Values>(
      {.path = "values",
       .meaning = "Examples written in the config itself.",
       .example = "source: {values: {inputs: [[0.0], [1.0]], targets: [[0.5], [2.5]]}}"},
      option(&Values::inputs, {.path = "inputs",
                               .need = Need::required,
                               .low = -unbounded,
                               .high = unbounded,
                               .meaning = "One list of numbers for each example; a number x is short for [x].",
                               .example = "inputs: [[0.0], [1.0]]"}),
      option(&Values::targets, {.path = "targets",
                                .need = Need::required,
                                .low = -unbounded,
                                .high = unbounded,
                                .meaning = "One list of numbers for each example, in the same order.",
                                .example = "targets: [[0.5], [2.5]]"}));
}

template struct Choice<Source>;

}  // namespace pmaptrain::spec
