// The rows of the losses and the metrics.
#include <limits>

#include "core/spec/rows/row.h"
#include "core/spec/types/lists.h"

namespace pmaptrain::spec {

static Key weights_key() {
  return {.path = "class_weights",
          .high = unbounded,
          .words = {"balanced"},
          .meaning =
              "One weight for each class, which scales the loss of examples with that label. The mean still "
              "divides by the number of examples, not by the sum of the weights. balanced: examples / (classes * "
              "examples of the class) in the training split, as scikit-learn's class_weight.",
          .example = "class_weights: [1.0, 5.0]\nclass_weights: balanced",
          .fallback_text = "1 for every class"};
}

static auto row(Tag<SoftmaxCrossEntropy>) {
  return alternative<SoftmaxCrossEntropy>(
      {.path = "softmax_cross_entropy",
       .meaning = "Cross-entropy of softmax(logits) and the targets, which are integer labels or class probabilities "
                  "(such as one-hot labels). For class probabilities, metrics use their argmax as the label.",
       .example = "loss: softmax_cross_entropy\nloss: {softmax_cross_entropy: {label_smoothing: 0.1}}"},
      option(&SoftmaxCrossEntropy::label_smoothing,
             {.path = "label_smoothing",
              .high = 1,
              .open_high = true,
              .varies = true,
              .structural = Structural{0.0, "without smoothing the labels are used as they are"},
              .meaning = "Label smoothing: the share of each target's probability mass that is distributed uniformly "
                         "over all classes.",
              .example = "label_smoothing: 0.1"}),
      option(&SoftmaxCrossEntropy::class_weights, weights_key()),
      option(&SoftmaxCrossEntropy::ignore_label,
             {.path = "ignore_label",
              .low = std::numeric_limits<std::int32_t>::min(),
              .high = std::numeric_limits<std::int32_t>::max(),
              .meaning = "Examples with this label, or positions of a sequence, do not count: neither in the loss and "
                         "its gradient nor in the metrics, and the means divide by the number of the others. It need "
                         "not be a class. As PyTorch's ignore_index.",
              .example = "ignore_label: -100",
              .fallback_text = "none"}));
}

static auto row(Tag<SigmoidCrossEntropy>) {
  return alternative<SigmoidCrossEntropy>(
      {.path = "sigmoid_cross_entropy",
       .meaning = "Binary cross-entropy of sigmoid(logits) and the targets, averaged over the outputs. Targets are "
                  "probabilities from 0 to 1, or labels 0 and 1 for a single output.",
       .example = "loss: sigmoid_cross_entropy"},
      option(&SigmoidCrossEntropy::class_weights, weights_key()));
}

static auto row(Tag<MeanSquaredError>) {
  return alternative<MeanSquaredError>(
      {.path = "mean_squared_error",
       .meaning = "For numeric targets: the mean squared error. Targets have shape (N, outputs) and are not broadcast.",
       .example = "loss: mean_squared_error"});
}

static auto row(Tag<MeanAbsoluteError>) {
  return alternative<MeanAbsoluteError>({.path = "mean_absolute_error",
                                         .meaning = "For numeric targets: the mean absolute error.",
                                         .example = "loss: mean_absolute_error"});
}

static auto row(Tag<Huber>) {
  return alternative<Huber>(
      {.path = "huber",
       .meaning = "For numeric targets: the Huber loss. With d = |output - target|, it is d^2 / 2 for d <= delta, else "
                  "delta * (d - delta / 2), averaged over the outputs.",
       .example = "loss: huber\nloss: {huber: {delta: 2.0}}"},
      option(&Huber::delta, {.path = "delta",
                             .high = unbounded,
                             .open_low = true,
                             .shorthand = true,
                             .varies = true,
                             .meaning = "The threshold between the quadratic and the linear part.",
                             .example = "delta: 1.0"}));
}

namespace metric {

static constexpr std::array<Word<Average>, 2> words_of(Tag<Average>) {
  return {{{"macro", Average::macro}, {"none", Average::none}}};
}

static auto row(Tag<Accuracy>) {
  return alternative<Accuracy>({.path = "accuracy",
                                .meaning =
                                    "For labels: the fraction of examples with argmax(logits) equal to the label. With "
                                    "sigmoid_cross_entropy, the prediction is 1 for a logit above 0, else 0.",
                                .example = "metrics: [accuracy]"});
}

static auto row(Tag<TopKAccuracy>) {
  return alternative<TopKAccuracy>(
      {.path = "top_k_accuracy",
       .meaning = "For labels: the fraction of examples whose label is among the k largest logits. It is reported as "
                  "top_5_accuracy for k = 5.",
       .example = "metrics: [top_k_accuracy: 5]"},
      option(&TopKAccuracy::k, {.path = "k",
                                .low = 1,
                                .shorthand = true,
                                .meaning = "Number of largest logits to compare with the label.",
                                .example = "k: 3"}));
}

static auto row(Tag<Precision>) {
  return alternative<Precision>(
      {.path = "precision",
       .meaning = "For labels: true positives / (true positives + false positives) of each class; 0 if there are none "
                  "of either.",
       .example = "metrics: [precision, precision: {average: none}]"},
      option(&Precision::average,
             {.path = "average",
              .meaning = "macro: the mean over the classes that occur in the labels or in the predictions (with a "
                         "single logit: class 1 alone). none: one value for each class: precision_0, precision_1, ...",
              .example = "average: none"}));
}

static auto row(Tag<Recall>) {
  return alternative<Recall>(
      {.path = "recall",
       .meaning = "For labels: true positives / (true positives + false negatives) of each class; 0 if there are none "
                  "of either.",
       .example = "metrics: [recall]"},
      option(&Recall::average, {.path = "average", .meaning = "As for precision.", .example = "average: none"}));
}

static auto row(Tag<F1>) {
  return alternative<F1>(
      {.path = "f1",
       .meaning = "For labels: the harmonic mean of precision and recall of each class; 0 if both are 0.",
       .example = "metrics: [f1]"},
      option(&F1::average, {.path = "average", .meaning = "As for precision.", .example = "average: none"}));
}

static auto row(Tag<RocAuc>) {
  return alternative<RocAuc>(
      {.path = "roc_auc",
       .meaning = "For labels, in evaluations alone: the area under the ROC curve, exactly as scikit-learn's "
                  "roc_auc_score computes it of the probabilities that predict gives; of more than two classes each "
                  "against the rest. null for a class of which all examples are, or none is, and then for their mean.",
       .example = "metrics: [accuracy, roc_auc]"},
      option(&RocAuc::average,
             {.path = "average",
              .meaning = "macro: the mean over the classes (of two classes: class 1). none: one value for each class: "
                         "roc_auc_0, roc_auc_1, ...",
              .example = "average: none"}));
}

static auto row(Tag<ConfusionMatrix>) {
  return alternative<ConfusionMatrix>(
      {.path = "confusion_matrix",
       .meaning = "For labels, in evaluations alone: how many examples of each class are predicted to be of each "
                  "class. It is in summary.json, with a list for each true class, and of up to 12 classes below the "
                  "report of a run without an ensemble and below what eval prints.",
       .example = "metrics: [accuracy, confusion_matrix]"});
}

static auto row(Tag<Perplexity>) {
  return alternative<Perplexity>({.path = "perplexity",
                                  .meaning = "For labels: exp of the mean softmax cross-entropy.",
                                  .example = "metrics: [perplexity]"});
}

static auto row(Tag<MeanAbsoluteError>) {
  return alternative<MeanAbsoluteError>({.path = "mean_absolute_error",
                                         .meaning = "For numeric targets: the mean absolute error.",
                                         .example = "metrics: [mean_absolute_error]"});
}

static auto row(Tag<MeanSquaredError>) {
  return alternative<MeanSquaredError>({.path = "mean_squared_error",
                                        .meaning = "For numeric targets: the mean squared error.",
                                        .example = "metrics: [mean_squared_error]"});
}

static auto row(Tag<RootMeanSquaredError>) {
  return alternative<RootMeanSquaredError>(
      {.path = "root_mean_squared_error",
       .meaning = "For numeric targets: the square root of the mean squared error; of several outputs the mean of "
                  "their roots, as scikit-learn computes it.",
       .example = "metrics: [root_mean_squared_error]"});
}

static auto row(Tag<R2>) {
  return alternative<R2>({.path = "r2",
                          .meaning = "For numeric targets: the coefficient of determination R², averaged over the "
                                     "outputs. If all targets are equal: 1 if every output equals its target, else 0.",
                          .example = "metrics: [r2]"});
}

}  // namespace metric

static auto row(Tag<Metric>) { return keys_of<Metric>(alternatives(&Metric::kind)); }

template struct Choice<Loss>;
template struct Section<Metric>;
template struct Choice<MetricKind>;

}  // namespace pmaptrain::spec
