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

static auto row(Tag<Npz>) {
  return alternative<Npz>(
      {.path = "npz",
       .meaning = "NumPy archives: one file with separate arrays for each split, or one file per split with the same "
                  "array names in each.",
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
                             .example = "targets: y"}));
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

static constexpr std::array<Word<Remainder>, 3> words_of(Tag<Remainder>) {
  return {{{"drop", Remainder::drop}, {"mask", Remainder::mask}, {"error", Remainder::error}}};
}

static auto row(Tag<ValidationShare>) {
  return keys_of<ValidationShare>(
      option(&ValidationShare::share, {.path = "share",
                                       .need = Need::required,
                                       .high = 1,
                                       .open_low = true,
                                       .open_high = true,
                                       .shorthand = true,
                                       .meaning = "The share of the training examples; at least 1 example.",
                                       .example = "share: 0.1"}),
      option(&ValidationShare::seed,
             {.path = "seed",
              .meaning = "The seed that chooses the examples. It is independent of the seed of the run, so runs with "
                         "different seeds are validated on the same examples.",
              .example = "seed: 1"}),
      option(&ValidationShare::shuffle, {.path = "shuffle",
                                         .meaning = "Whether the examples are chosen at random; false: the last ones.",
                                         .example = "shuffle: false"}));
}

static auto row(Tag<Limit>) {
  constexpr std::string_view example = "train: 1 batch";
  return keys_of<Limit>(
      option(&Limit::train, {.path = "train",
                             .meaning = "The number of examples of the training split, after data.validation has taken "
                                        "its share.",
                             .example = example}),
      option(&Limit::validation, {.path = "validation",
                                  .meaning = "The number of examples of the validation split.",
                                  .example = "validation: 1000 examples"}),
      option(
          &Limit::test,
          {.path = "test", .meaning = "The number of examples of the test split.", .example = "test: 1000 examples"}));
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
                                 .meaning = "The source of the examples.",
                                 .example = "source: fashion_mnist"}),
      by_hand<DataSpec>({.path = "batch_size",
                         .type = Type::integer,
                         .low = 1,
                         .words = {"all"},
                         .meaning = "The global batch size: examples per step over all devices. all: the whole "
                                    "training split. Either batch_size or batch_size_per_device is required.",
                         .example = "batch_size: 128",
                         .fallback_text = "none"}),
      by_hand<DataSpec>({.path = "batch_size_per_device",
                         .type = Type::integer,
                         .low = 1,
                         .meaning = "Examples per step on each device, in place of batch_size.",
                         .example = "batch_size_per_device: 16",
                         .fallback_text = "none"}),
      by_hand<DataSpec>({.path = "axes",
                         .type = Type::axis_names,
                         .meaning = "The axes over which the batch is sharded and the gradients are averaged: "
                                    "all but that of an ensemble.",
                         .example = "axes: [devices]",
                         .fallback_text = "all axes that no ensemble uses"}),
      option(&DataSpec::remainder,
             {.path = "remainder",
              .meaning = "The treatment of an incomplete last batch of an epoch. drop: skip its examples; mask: pad it "
                         "with rows of zero weight; error: refuse the config. mask also allows a batch size that does "
                         "not divide over the devices. Evaluation always counts every example once.",
              .example = "remainder: mask"}),
      option(&DataSpec::shuffle, {.path = "shuffle",
                                  .meaning = "Whether the examples are shuffled anew in each epoch; false: file order.",
                                  .example = "shuffle: false"}),
      option(&DataSpec::microbatches,
             {.path = "microbatches",
              .low = 1,
              .meaning =
                  "The number of microbatches for gradient accumulation: each device splits its rows of the batch into "
                  "this many slices and accumulates their gradients. Gradients are synchronised once per step.",
              .example = "microbatches: 4"}),
      section(&DataSpec::validation,
              {.path = "validation",
               .meaning = "A share of the training examples that is kept aside: train.eval_every evaluates it in place "
                          "of the test split, which is then evaluated at the end. For a source without a validation "
                          "split of its own.",
               .example = "validation: 0.1\nvalidation: {share: 0.1, seed: 1, shuffle: false}",
               .fallback_text = "none"}),
      section(&DataSpec::limit, {.path = "limit",
                                 .meaning = "Uses only the first examples of a split, for example to overfit one "
                                            "batch. A batch is one of training, also for the other splits.",
                                 .example = "limit: {train: 1 batch}",
                                 .fallback_text = "none"}),
      section(
          &DataSpec::normalize,
          {.path = "normalize",
           .meaning = "Normalises the inputs to (x - mean) / std. 8-bit inputs are scaled from 0..255 to 0..1 first.",
           .example = "normalize: {mean: [0.5], std: [0.5]}",
           .fallback_text = "none"}),
      option(&DataSpec::seed, {.path = "seed",
                               .varies = true,
                               .meaning = "A separate seed for the order of the examples and for synthetic data.",
                               .example = "seed: 1",
                               .fallback_text = "the seed of the run"}));
}

template struct Section<DataSpec>;
template struct Section<Normalize>;
template struct Section<ValidationShare>;
template struct Section<Limit>;
template struct Choice<Source>;

}  // namespace pmaptrain::spec
