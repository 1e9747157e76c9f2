#include "core/data/arrays/idx_source.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/file.h"
#include "core/data/opening.h"

namespace pmaptrain::data {
namespace {

// What reads a split.
auto read_by(const Opening& opening) {
  return [&opening](const FilePair& pair, Notes& notes) {
    const auto read = [](const std::string& path) { return about_file(path, [&] { return read_idx(path); }); };
    Array inputs = read(pair.inputs);  // first, so that its errors are reported first
    return make_dataset(
        std::move(inputs), read(pair.targets), notes, opening.place,
        {.numeric_targets = opening.numeric_targets, .tokens = opening.token_inputs, .label_maps = opening.label_maps});
  };
}

}  // namespace

Declaration<Idx> Idx::declaration() {
  return declare::kind<Idx>(
      {.path = "idx",
       .meaning = "Files in MNIST's IDX format, plain or gzip.",
       .example = "source: {idx: {train: [images.gz, labels.gz], test: [test-images.gz, test-labels.gz]}}"},
      field(&Idx::train, {.path = "train",
                          .need = Need::required,
                          .meaning = "The files of inputs and of targets of the training split.",
                          .example = "train: [images.gz, labels.gz]"}),
      field(&Idx::validation, {.path = "validation",
                               .meaning = "The files of inputs and of targets of the validation split.",
                               .example = "validation: [val-images.gz, val-labels.gz]"}),
      field(&Idx::test, {.path = "test",
                         .meaning = "The files of inputs and of targets of the test split.",
                         .example = "test: [test-images.gz, test-labels.gz]"}));
}

Source Idx::open(const Opening& opening) const {
  return open_splits(given(train, validation, test), opening, read_by(opening));
}

Declaration<FashionMnist> FashionMnist::declaration() {
  return declare::kind<FashionMnist>(
      {.path = "fashion_mnist",
       .meaning = "Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 in 10 classes, as Debian's "
                  "dataset-fashion-mnist installs them.",
       .example = "source: fashion_mnist"},
      field(&FashionMnist::dir, {.path = "dir",
                                 .is_path = true,
                                 .meaning = "The folder of the four files.",
                                 .example = "dir: datasets/fashion-mnist"}));
}

Source FashionMnist::open(const Opening& opening) const {
  const auto pair = [&](std::string_view prefix) {
    return FilePair{fmt::format("{}/{}-images-idx3-ubyte.gz", dir, prefix),
                    fmt::format("{}/{}-labels-idx1-ubyte.gz", dir, prefix)};
  };
  try {
    return open_splits<FilePair>({{Split::train, pair("train")}, {Split::test, pair("t10k")}}, opening,
                                 read_by(opening));
  } catch (const Error& error) {
    if (dir != FashionMnist{}.dir) throw;  // the user chose this folder
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& d : diagnostics) {
      d.help =
          "Debian's package dataset-fashion-mnist has these files (apt-get install dataset-fashion-mnist); "
          "data.source.fashion_mnist.dir sets another folder";
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

}  // namespace pmaptrain::data
