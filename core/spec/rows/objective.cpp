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
      option(&SigmoidCrossEntropy::class_weights, weights_key()),
      option(
          &SigmoidCrossEntropy::positive_weights,
          {.path = "positive_weights",
           .high = unbounded,
           .words = {"balanced"},
           .meaning = "One weight for each output, which scales the part of the loss that is due to targets of 1, as "
                      "PyTorch's pos_weight. balanced: negatives / positives of each label in the training split.",
           .example = "positive_weights: [3.0, 10.0]\npositive_weights: balanced",
           .fallback_text = "1 for every output"}));
}

static auto row(Tag<Focal>) {
  return alternative<Focal>(
      {.path = "focal",
       .meaning = "The focal loss, (1 - p)^gamma * cross-entropy, where p is the probability that the outputs give to "
                  "the target: of softmax(logits) for class labels, of sigmoid(logits) for labels 0 and 1 (one output) "
                  "and for several labels, averaged over the outputs, as torchvision's sigmoid_focal_loss.",
       .example = "loss: focal\nloss: {focal: {gamma: 2.0, alpha: 0.25}}"},
      option(&Focal::gamma, {.path = "gamma",
                             .high = unbounded,
                             .varies = true,
                             .meaning = "How much examples count less that are predicted well; 0 is cross-entropy.",
                             .example = "gamma: 2.0"}),
      option(&Focal::alpha, {.path = "alpha",
                             .high = 1,
                             .meaning = "With sigmoids, the weight of targets of 1; that of targets of 0 is 1 - alpha.",
                             .example = "alpha: 0.25",
                             .fallback_text = "none"}));
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

static auto row(Tag<Quantile>) {
  return alternative<Quantile>(
      {.path = "quantile",
       .meaning = "For numeric targets: the pinball loss of quantiles. With e = target - output, it is max(q * e, "
                  "(q - 1) * e), averaged over the outputs. The model has an output for each q of each number of a "
                  "target. Metrics are of the quantile nearest to the median.",
       .example = "loss: quantile\nloss: {quantile: {q: [0.05, 0.5, 0.95]}}"},
      option(&Quantile::q, {.path = "q",
                            .fallback = "[0.1, 0.5, 0.9]",
                            .high = 1,
                            .open_low = true,
                            .open_high = true,
                            .meaning = "The quantiles, in ascending order.",
                            .example = "q: [0.1, 0.5, 0.9]"}));
}

static auto row(Tag<Poisson>) {
  return alternative<Poisson>(
      {.path = "poisson",
       .meaning =
           "For counts, targets of at least 0: the Poisson loss exp(output) - target * output, averaged over the "
           "outputs, as PyTorch's PoissonNLLLoss. Outputs are logarithms of rates; predictions and metrics are "
           "of the rates.",
       .example = "loss: poisson"});
}

namespace metric {

static constexpr std::array<Word<Average>, 5> words_of(Tag<Average>) {
  return {{{"macro", Average::macro},
           {"micro", Average::micro},
           {"weighted", Average::weighted},
           {"samples", Average::samples},
           {"none", Average::none}}};
}

static Key threshold_key() {
  return {.path = "threshold",
          .high = 1,
          .open_low = true,
          .open_high = true,
          .meaning = "The probability above which a label counts as predicted, or class 1 of two classes.",
          .example = "threshold: 0.3"};
}

static auto row(Tag<Accuracy>) {
  return alternative<Accuracy>(
      {.path = "accuracy",
       .meaning = "For labels: the fraction of examples with argmax(logits) equal to the label. With "
                  "sigmoid_cross_entropy, a label is predicted where its probability is above the threshold, and of "
                  "several labels it is the fraction of those that are right.",
       .example = "metrics: [accuracy]\nmetrics: [accuracy: {threshold: 0.3}]"},
      option(&Accuracy::average,
             {.path = "average",
              .meaning = "Of several labels. micro, macro and samples: of all labels; weighted: the mean over the "
                         "labels by how often each occurs; none: one value for each label. Of classes micro alone.",
              .example = "average: none"}),
      option(&Accuracy::threshold, threshold_key()));
}

static auto row(Tag<SubsetAccuracy>) {
  return alternative<SubsetAccuracy>(
      {.path = "subset_accuracy",
       .meaning = "For several labels: the fraction of examples of which all labels are predicted right, as "
                  "scikit-learn's accuracy_score.",
       .example = "metrics: [subset_accuracy]"},
      option(&SubsetAccuracy::threshold, threshold_key()));
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

static Key average_key(const char* meaning = "As for precision.") {
  return {.path = "average", .meaning = meaning, .example = "average: none"};
}

static auto row(Tag<Precision>) {
  return alternative<Precision>(
      {.path = "precision",
       .meaning = "For labels: true positives / (true positives + false positives) of each class or label; 0 if there "
                  "are none of either. Of sequences each position is an example.",
       .example = "metrics: [precision, precision: {average: none}]"},
      option(&Precision::average,
             average_key("macro: the mean over the classes that occur in the labels or in the predictions (with a "
                         "single logit: class 1 alone), or over all of several labels. micro: of all decisions "
                         "together. weighted: the mean by how often each class or label occurs. samples: of several "
                         "labels, the mean over examples. none: one value for each: precision_0, precision_1, ... "
                         "The others are reported as precision_micro and so on.")),
      option(&Precision::threshold, threshold_key()));
}

static auto row(Tag<Recall>) {
  return alternative<Recall>(
      {.path = "recall",
       .meaning = "For labels: true positives / (true positives + false negatives) of each class or label; 0 if there "
                  "are none of either. Of sequences each position is an example.",
       .example = "metrics: [recall]"},
      option(&Recall::average, average_key()), option(&Recall::threshold, threshold_key()));
}

static auto row(Tag<F1>) {
  return alternative<F1>(
      {.path = "f1",
       .meaning = "For labels: the harmonic mean of precision and recall of each class or label; 0 if both are 0. Of "
                  "sequences each position is an example.",
       .example = "metrics: [f1]\nmetrics: [f1: {average: micro, threshold: 0.3}]"},
      option(&F1::average, average_key()), option(&F1::threshold, threshold_key()));
}

static auto row(Tag<RocAuc>) {
  return alternative<RocAuc>(
      {.path = "roc_auc",
       .meaning = "For labels, in evaluations alone: the area under the ROC curve, exactly as scikit-learn's "
                  "roc_auc_score computes it of the probabilities that predict gives; of more than two classes each "
                  "against the rest. null for a class of which all examples are, or none is, and then for their mean; "
                  "of several labels the mean is of the others, and roc_auc_left_out counts these.",
       .example = "metrics: [accuracy, roc_auc]"},
      option(&RocAuc::average, average_key("As for precision; of two classes class 1 alone, unless none.")));
}

static auto row(Tag<AveragePrecision>) {
  return alternative<AveragePrecision>(
      {.path = "average_precision",
       .meaning = "For labels, in evaluations alone: the area under the curve of precision and recall, as "
                  "scikit-learn's average_precision_score; of more than two classes each against the rest. It tells "
                  "more than roc_auc where a class is rare. null for a class or label without an example, as for "
                  "roc_auc.",
       .example = "metrics: [average_precision]"},
      option(&AveragePrecision::average, average_key("As for roc_auc.")));
}

static auto row(Tag<ConfusionMatrix>) {
  return alternative<ConfusionMatrix>(
      {.path = "confusion_matrix",
       .meaning = "For labels, in evaluations alone: how many examples of each class, or positions of sequences, are "
                  "predicted to be of each class. It is in summary.json, with a list for each true class, and of up to "
                  "12 classes below the "
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

static auto row(Tag<MeanAbsolutePercentageError>) {
  return alternative<MeanAbsolutePercentageError>(
      {.path = "mean_absolute_percentage_error",
       .meaning = "For numeric targets: the mean of |output - target| / max(|target|, 2.2e-16), as scikit-learn's; 0.1 "
                  "is 10 %. A target of 0 makes it huge.",
       .example = "metrics: [mean_absolute_percentage_error]"});
}

static auto row(Tag<MedianAbsoluteError>) {
  return alternative<MedianAbsoluteError>(
      {.path = "median_absolute_error",
       .meaning = "For numeric targets, in evaluations alone: the median of |output - target|, of several outputs the "
                  "mean of their medians, as scikit-learn's.",
       .example = "metrics: [median_absolute_error]"});
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
