// The rows of `data` and of its sources.
#include "core/spec/row.h"

namespace pmaptrain::spec {

static auto row(Tag<FashionMnist>) {
  return alternative<FashionMnist>(
      {.path = "fashion_mnist",
       .meaning = "Fashion-MNIST: 60,000 training and 10,000 test images of 28x28 in 10 classes, as Debian's "
                  "dataset-fashion-mnist installs them.",
       .example = "source: fashion_mnist"},
      option(&FashionMnist::dir, {.path = "dir",
                                  .type = Type::path,
                                  .meaning = "The folder that holds the four files.",
                                  .example = "dir: datasets/fashion-mnist"}));
}

static auto row(Tag<Idx>) {
  return alternative<Idx>(
      {.path = "idx",
       .meaning = "Files in MNIST's IDX format, plain or gzip.",
       .example = "source: {idx: {train: [images.gz, labels.gz], test: [test-images.gz, test-labels.gz]}}"},
      option(&Idx::train, {.path = "train",
                           .need = Need::required,
                           .meaning = "The file of inputs and the file of targets to train on.",
                           .example = "train: [images.gz, labels.gz]"}),
      option(&Idx::test, {.path = "test",
                          .meaning = "The files of inputs and of targets to evaluate on.",
                          .example = "test: [test-images.gz, test-labels.gz]"}));
}

static auto row(Tag<Npz>) {
  return alternative<Npz>(
      {.path = "npz",
       .meaning = "NumPy archives: one file with named arrays for each split, or one file a split with the same two "
                  "names in each.",
       .example = "source: {npz: {file: f.npz, train: [x_train, y_train], test: [x_test, y_test]}}\n"
                  "source: {npz: {train: train.npz, test: test.npz, inputs: x, targets: y}}"},
      option(&Npz::file, {.path = "file",
                          .type = Type::path,
                          .meaning = "One archive that holds every split.",
                          .example = "file: digits.npz"}),
      option(&Npz::train,
             {.path = "train",
              .need = Need::required,
              .meaning = "With file: the names of the arrays of inputs and targets. Without: the archive to train on.",
              .example = "train: [x_train, y_train]"}),
      option(&Npz::test, {.path = "test",
                          .meaning = "The same for the examples to evaluate on.",
                          .example = "test: [x_test, y_test]"}),
      option(&Npz::inputs, {.path = "inputs",
                            .meaning = "Without file: the name of the array of inputs in each archive.",
                            .example = "inputs: x"}),
      option(&Npz::targets, {.path = "targets",
                             .meaning = "Without file: the name of the array of targets in each archive.",
                             .example = "targets: y"}));
}

static auto row(Tag<SyntheticLinear>) {
  return alternative<SyntheticLinear>(
      {.path = "synthetic_linear",
       .meaning =
           "Linear regression with true weights and bias drawn from the seed, normal inputs and normal noise; the "
           "run ends with the learned values against the true ones.",
       .example = "source: {synthetic_linear: {features: 5, examples_per_device: 100, noise: 0.1}}"},
      option(&SyntheticLinear::features,
             {.path = "features", .low = 1, .meaning = "Inputs of an example.", .example = "features: 5"}),
      option(&SyntheticLinear::examples_per_device, {.path = "examples_per_device",
                                                     .low = 1,
                                                     .meaning = "Examples for each logical device.",
                                                     .example = "examples_per_device: 100"}),
      option(&SyntheticLinear::noise, {.path = "noise",
                                       .high = unbounded,
                                       .meaning = "Standard deviation of what is added to the targets.",
                                       .example = "noise: 0.1"}));
}

static auto row(Tag<SyntheticImages>) {
  return alternative<SyntheticImages>(
      {.path = "synthetic_images",
       .meaning = "Images of a pattern for each class plus noise, made from the seed one by one as they are needed.",
       .example = "source: {synthetic_images: {height: 32, width: 32, channels: 3, train: 50000}}"},
      option(&SyntheticImages::height,
             {.path = "height", .low = 1, .high = 65536, .meaning = "Rows of an image.", .example = "height: 32"}),
      option(&SyntheticImages::width,
             {.path = "width", .low = 1, .high = 65536, .meaning = "Columns of an image.", .example = "width: 32"}),
      option(&SyntheticImages::channels,
             {.path = "channels", .low = 1, .high = 65536, .meaning = "Values of a pixel.", .example = "channels: 3"}),
      option(&SyntheticImages::classes, {.path = "classes",
                                         .low = 2,
                                         .high = 1e6,
                                         .meaning = "Labels run from 0 to one less than this.",
                                         .example = "classes: 10"}),
      option(&SyntheticImages::train,
             {.path = "train", .low = 1, .meaning = "Examples to train on.", .example = "train: 50000"}),
      option(&SyntheticImages::test,
             {.path = "test", .low = 0, .meaning = "Examples to evaluate on; 0 for none.", .example = "test: 10000"}),
      option(&SyntheticImages::noise, {.path = "noise",
                                       .high = unbounded,
                                       .meaning = "Standard deviation of what is added to each value.",
                                       .example = "noise: 0.3"}));
}

static auto row(Tag<Values>) {
  return alternative<Values>(
      {.path = "values",
       .meaning = "Examples written into the config.",
       .example = "source: {values: {inputs: [[0.0], [1.0]], targets: [[0.5], [2.5]]}}"},
      option(&Values::inputs, {.path = "inputs",
                               .need = Need::required,
                               .low = -unbounded,
                               .high = unbounded,
                               .meaning = "One list of numbers for each example; a plain number is a list of one.",
                               .example = "inputs: [[0.0], [1.0]]"}),
      option(&Values::targets, {.path = "targets",
                                .need = Need::required,
                                .low = -unbounded,
                                .high = unbounded,
                                .meaning = "One list of numbers for each example, in the same order.",
                                .example = "targets: [[0.5], [2.5]]"}));
}

static constexpr std::array<Word<Remainder>, 3> words_of(Tag<Remainder>) {
  return {{{"drop", Remainder::drop}, {"mask", Remainder::mask}, {"error", Remainder::error}}};
}

static auto row(Tag<Normalize>) {
  return keys_of<Normalize>(option(&Normalize::mean, {.path = "mean",
                                                      .need = Need::required,
                                                      .low = -unbounded,
                                                      .high = unbounded,
                                                      .meaning = "One for each channel, or one for all.",
                                                      .example = "mean: [0.5]"}),
                            option(&Normalize::std, {.path = "std",
                                                     .need = Need::required,
                                                     .high = unbounded,
                                                     .open_low = true,
                                                     .meaning = "One for each channel, or one for all.",
                                                     .example = "std: [0.5]"}));
}

static auto row(Tag<DataSpec>) {
  return keys_of<DataSpec>(
      choice(&DataSpec::source, {.path = "source",
                                 .need = Need::required,
                                 .meaning = "Where the examples come from.",
                                 .example = "source: fashion_mnist"}),
      by_hand<DataSpec>({.path = "batch_size",
                         .type = Type::integer,
                         .low = 1,
                         .words = {"all"},
                         .meaning =
                             "Examples a step, over all devices; all takes the whole train split. Either this or "
                             "batch_size_per_device is needed.",
                         .example = "batch_size: 128",
                         .fallback_text = "none"}),
      by_hand<DataSpec>({.path = "batch_size_per_device",
                         .type = Type::integer,
                         .low = 1,
                         .meaning = "Examples a step on each device, instead of batch_size.",
                         .example = "batch_size_per_device: 16",
                         .fallback_text = "none"}),
      by_hand<DataSpec>(
          {.path = "axes",
           .type = Type::axis_names,
           .meaning =
               "The axes that the batch is split over and gradients are averaged over: in this version all axes of "
               "the mesh.",
           .example = "axes: [devices]",
           .fallback_text = "all axes of the mesh"}),
      option(
          &DataSpec::remainder,
          {.path = "remainder",
           .meaning =
               "The short last batch of an epoch: drop skips it, mask pads it with rows that count for nothing, error "
               "refuses it. mask also allows a batch that does not divide over the devices. Evaluation always counts "
               "every example once.",
           .example = "remainder: mask"}),
      option(&DataSpec::shuffle,
             {.path = "shuffle",
              .meaning = "Whether each epoch has an order of its own; false keeps the order of the file.",
              .example = "shuffle: false"}),
      option(&DataSpec::microbatches,
             {.path = "microbatches",
              .low = 1,
              .meaning =
                  "Gradient accumulation: each device's share of the batch is computed in this many slices, with one "
                  "synchronisation a step.",
              .example = "microbatches: 4"}),
      section(
          &DataSpec::normalize,
          {.path = "normalize",
           .meaning = "Subtract a mean from the inputs and divide by a standard deviation; bytes reach it as 0 to 1.",
           .example = "normalize: {mean: [0.5], std: [0.5]}",
           .fallback_text = "none"}),
      option(&DataSpec::seed, {.path = "seed",
                               .meaning = "A seed of its own for the order of the examples and for "
                                          "synthetic data.",
                               .example = "seed: 1",
                               .fallback_text = "the seed of the run"}));
}

template struct Section<DataSpec>;
template struct Section<Normalize>;
template struct Choice<Source>;

}  // namespace pmaptrain::spec
