// The rows of the losses, the metrics and the optimizers.
#include "core/spec/row.h"

namespace pmaptrain::spec {

static auto row(Tag<SoftmaxCrossEntropy>) {
  return alternative<SoftmaxCrossEntropy>(
      {.path = "softmax_cross_entropy",
       .meaning =
           "For labels: minus the logarithm of the label's softmax probability. For a chance of each class, such as "
           "one-hot labels: its mean over the classes by these chances; metrics take the likeliest for the label.",
       .example = "loss: softmax_cross_entropy\nloss: {softmax_cross_entropy: {label_smoothing: 0.1}}"},
      option(&SoftmaxCrossEntropy::label_smoothing,
             {.path = "label_smoothing",
              .high = 1,
              .open_high = true,
              .meaning = "The share of each label's probability that is spread over all classes equally.",
              .example = "label_smoothing: 0.1"}),
      option(&SoftmaxCrossEntropy::class_weights,
             {.path = "class_weights",
              .high = unbounded,
              .meaning =
                  "One for each class: what the loss of an example with that label is multiplied by. The mean is still "
                  "over the number of examples.",
              .example = "class_weights: [1.0, 5.0]",
              .fallback_text = "1 for every class"}));
}

static auto row(Tag<SigmoidCrossEntropy>) {
  return alternative<SigmoidCrossEntropy>(
      {.path = "sigmoid_cross_entropy",
       .meaning =
           "For numbers from 0 to 1, or for labels 0 and 1 and one output: the binary cross-entropy of the outputs' "
           "sigmoids, of which it is the mean.",
       .example = "loss: sigmoid_cross_entropy"});
}

static auto row(Tag<MeanSquaredError>) {
  return alternative<MeanSquaredError>(
      {.path = "mean_squared_error",
       .meaning = "For numbers: the mean of the squared differences; targets are (N, outputs), never broadcast.",
       .example = "loss: mean_squared_error"});
}

static auto row(Tag<MeanAbsoluteError>) {
  return alternative<MeanAbsoluteError>({.path = "mean_absolute_error",
                                         .meaning = "For numbers: the mean of the absolute differences.",
                                         .example = "loss: mean_absolute_error"});
}

static auto row(Tag<Huber>) {
  return alternative<Huber>(
      {.path = "huber",
       .meaning =
           "For numbers: half the squared difference up to delta, beyond it delta times (the difference less half of "
           "delta); the mean of these.",
       .example = "loss: huber\nloss: {huber: {delta: 2.0}}"},
      option(&Huber::delta, {.path = "delta",
                             .high = unbounded,
                             .open_low = true,
                             .shorthand = true,
                             .meaning = "Where the squares end.",
                             .example = "delta: 1.0"}));
}

namespace metric {

static constexpr std::array<Word<Average>, 2> words_of(Tag<Average>) {
  return {{{"macro", Average::macro}, {"none", Average::none}}};
}

static auto row(Tag<Accuracy>) {
  return alternative<Accuracy>(
      {.path = "accuracy",
       .meaning =
           "For labels: the share of examples whose largest output is their label (with sigmoid_cross_entropy: whose "
           "output is above 0 where the label is 1).",
       .example = "metrics: [accuracy]"});
}

static auto row(Tag<TopKAccuracy>) {
  return alternative<TopKAccuracy>(
      {.path = "top_k_accuracy",
       .meaning =
           "For labels: the share of examples whose label is among their k largest outputs; called top_5_accuracy "
           "where k is 5.",
       .example = "metrics: [top_k_accuracy: 5]"},
      option(&TopKAccuracy::k,
             {.path = "k", .low = 1, .shorthand = true, .meaning = "How many outputs count.", .example = "k: 3"}));
}

static auto row(Tag<Precision>) {
  return alternative<Precision>(
      {.path = "precision",
       .meaning =
           "For labels: of the examples that the model gives to a class, the share that belongs to it; 0 where it "
           "gives it none.",
       .example = "metrics: [precision, precision: {average: none}]"},
      option(&Precision::average,
             {.path = "average",
              .meaning = "macro: the mean over the classes that occur, in the labels or in what the model says; of "
                         "labels 0 and 1, "
                         "class 1 alone. none: each class for itself, as precision_0, precision_1, ...",
              .example = "average: none"}));
}

static auto row(Tag<Recall>) {
  return alternative<Recall>(
      {.path = "recall",
       .meaning =
           "For labels: of the examples of a class, the share that the model gives to it; 0 where there are none.",
       .example = "metrics: [recall]"},
      option(&Recall::average, {.path = "average", .meaning = "As for precision.", .example = "average: none"}));
}

static auto row(Tag<F1>) {
  return alternative<F1>(
      {.path = "f1",
       .meaning = "For labels: the harmonic mean of a class's precision and recall; 0 where both are.",
       .example = "metrics: [f1]"},
      option(&F1::average, {.path = "average", .meaning = "As for precision.", .example = "average: none"}));
}

static auto row(Tag<Perplexity>) {
  return alternative<Perplexity>({.path = "perplexity",
                                  .meaning = "For labels: e to the power of the mean softmax cross-entropy.",
                                  .example = "metrics: [perplexity]"});
}

static auto row(Tag<MeanAbsoluteError>) {
  return alternative<MeanAbsoluteError>({.path = "mean_absolute_error",
                                         .meaning = "For numbers: the mean of the absolute differences.",
                                         .example = "metrics: [mean_absolute_error]"});
}

static auto row(Tag<MeanSquaredError>) {
  return alternative<MeanSquaredError>({.path = "mean_squared_error",
                                        .meaning = "For numbers: the mean of the squared differences.",
                                        .example = "metrics: [mean_squared_error]"});
}

static auto row(Tag<R2>) {
  return alternative<R2>(
      {.path = "r2",
       .meaning = "For numbers: the share of the targets' variance that the outputs explain, R²; the mean over several "
                  "outputs. Of targets that are all equal: 1 where every output is right, else 0.",
       .example = "metrics: [r2]"});
}

}  // namespace metric

static auto row(Tag<Metric>) { return keys_of<Metric>(alternatives(&Metric::kind)); }

static auto row(Tag<Sgd>) {
  return alternative<Sgd>(
      {.path = "sgd",
       .meaning = "Gradient descent, with momentum if that is not 0.",
       .example = "sgd: {momentum: 0.9}"},
      option(&Sgd::momentum, {.path = "momentum",
                              .high = 1,
                              .open_high = true,
                              .meaning = "The share of the last step that is kept.",
                              .example = "momentum: 0.9"}),
      option(&Sgd::nesterov,
             {.path = "nesterov", .meaning = "Nesterov's form of momentum.", .example = "nesterov: true"}));
}

static auto row(Tag<Adam>) {
  return alternative<Adam>(
      {.path = "adam",
       .meaning = "Adam: steps scaled by running moments of the gradient.",
       .example = "adam: {b1: 0.9, b2: 0.999, eps: 1.0e-8}"},
      option(
          &Adam::b1,
          {.path = "b1", .high = 1, .open_high = true, .meaning = "Decay of the first moment.", .example = "b1: 0.9"}),
      option(&Adam::b2, {.path = "b2",
                         .high = 1,
                         .open_high = true,
                         .meaning = "Decay of the second moment.",
                         .example = "b2: 0.999"}),
      option(&Adam::eps, {.path = "eps",
                          .high = unbounded,
                          .open_low = true,
                          .meaning = "Added to the denominator.",
                          .example = "eps: 1.0e-8"}));
}

static auto row(Tag<AdamW>) {
  return alternative<AdamW>(
      {.path = "adamw", .meaning = "Adam with decoupled weight decay.", .example = "adamw: {weight_decay: 0.01}"},
      option(
          &AdamW::b1,
          {.path = "b1", .high = 1, .open_high = true, .meaning = "Decay of the first moment.", .example = "b1: 0.9"}),
      option(&AdamW::b2, {.path = "b2",
                          .high = 1,
                          .open_high = true,
                          .meaning = "Decay of the second moment.",
                          .example = "b2: 0.999"}),
      option(&AdamW::eps, {.path = "eps",
                           .high = unbounded,
                           .open_low = true,
                           .meaning = "Added to the denominator.",
                           .example = "eps: 1.0e-8"}),
      option(&AdamW::weight_decay, {.path = "weight_decay",
                                    .high = unbounded,
                                    .meaning = "The share of each parameter that a step at learning rate 1 takes away.",
                                    .example = "weight_decay: 0.01"}));
}

static auto row(Tag<OptimizerSpec>) {
  return keys_of<OptimizerSpec>(alternatives(&OptimizerSpec::rule),
                                option(&OptimizerSpec::learning_rate, {.path = "learning_rate",
                                                                       .need = Need::required,
                                                                       .high = unbounded,
                                                                       .meaning = "The size of a step.",
                                                                       .example = "learning_rate: 0.001"}),
                                option(&OptimizerSpec::base_batch_size,
                                       {.path = "base_batch_size",
                                        .low = 1,
                                        .meaning = "The learning rate is multiplied by batch_size / base_batch_size.",
                                        .example = "base_batch_size: 32",
                                        .fallback_text = "no scaling"}));
}

template struct Choice<Loss>;
template struct Section<Metric>;
template struct Choice<MetricKind>;
template struct Section<OptimizerSpec>;
template struct Choice<OptimizerRule>;

}  // namespace pmaptrain::spec
