// The rows of `data`, but for its sources.
#include "core/spec/rows/row.h"
#include "core/spec/types/axes.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/lists.h"
#include "core/spec/types/path.h"
#include "core/spec/types/word.h"

namespace pmaptrain::spec {

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
                                         .example = "shuffle: false"}),
      option(&ValidationShare::stratify,
             {.path = "stratify",
              .meaning = "Whether the share is that of each class: at least 1 example of each. For class labels.",
              .example = "stratify: true"}),
      option(&ValidationShare::group,
             {.path = "group",
              .meaning = "Of csv, a column of which no text is in both splits: the rows of a patient, a customer or a "
                         "document stay together. Whole groups are taken, in an order drawn from the seed, as long as "
                         "they fit in the share. The column is no input unless inputs names it.",
              .example = "group: patient"}));
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
      choice(&DataSpec::tokenizer,
             {.path = "tokenizer",
              .meaning = "What turns texts into tokens, of data.source.text and of a column of texts. The run keeps a "
                         "copy of it.",
              .example = "tokenizer: {file: tokenizer.json}",
              .fallback_text = "bytes"}),
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
      option(
          &DataSpec::bucket_by_length,
          {.path = "bucket_by_length",
           .low = 2,
           .meaning = "For sequences with lengths: each window of so many batches of the shuffled order is sorted by "
                      "length and cut into batches, which are shuffled. A step then has sequences of similar "
                      "length, and computes as many positions as the longest needs, of a few lengths that validate "
                      "lists.",
           .example = "bucket_by_length: 50",
           .fallback_text = "none"}),
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
           .words = {"auto"},
           .meaning = "Normalises the inputs to (x - mean) / std. 8-bit inputs are scaled from 0..255 to 0..1 first. "
                      "auto: mean and standard deviation of each channel or column of numbers over the training split, "
                      "after data.validation and data.limit; columns of categories stay as they are.",
           .example = "normalize: auto\nnormalize: {mean: [0.5], std: [0.5]}",
           .fallback_text = "none"}),
      option(&DataSpec::normalize_targets,
             {.path = "normalize_targets",
              .words = {"auto", "log"},
              .item_words = {"auto", "log"},
              .meaning = "For a loss of numbers: auto trains on (target - mean) / std, with the mean and the standard "
                         "deviation of each output over the training split, after data.validation and data.limit, "
                         "weighted where examples have weights. log does so with log(1 + target), for targets of at "
                         "least 0, of which a few are much larger than the others; predictions are at least 0, and "
                         "nearer a median than a mean. Or by output, the others as they are: outputs are named after "
                         "their columns, or numbered from 0. The loss, and huber.delta with it, is in these units; "
                         "metrics and predictions are in those of the targets.",
              .example = "normalize_targets: auto\nnormalize_targets: {price: log, age: auto}",
              .fallback_text = "none"}),
      choices(&DataSpec::augment,
              {.path = "augment",
               .meaning = "Random changes of the training images, in the order of the list, before normalize. They "
                          "are drawn anew for each example in each epoch, from data.seed. Validation, test and "
                          "prediction read the images as they are. For 8-bit images.",
               .example = "augment: [{random_crop: {padding: 4}}, random_flip, {cutout: {size: 8}}]",
               .fallback_text = "none",
               .item = "augmentation"}),
      option(&DataSpec::seed,
             {.path = "seed",
              .varies = true,
              .fixed = "the order of the examples is drawn from it",
              .meaning = "A separate seed for the order of the examples, for augment and for synthetic data.",
              .example = "seed: 1",
              .fallback_text = "the seed of the run"}));
}

template struct Section<DataSpec>;
template struct Section<Normalize>;
template struct Section<ValidationShare>;
template struct Section<Limit>;

}  // namespace pmaptrain::spec
