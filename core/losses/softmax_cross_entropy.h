// Cross-entropy of softmax(logits) and labels or class probabilities.
#pragma once

#include <limits>

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct SoftmaxCrossEntropy {
  double label_smoothing = 0.0;
  ClassWeights class_weights;
  std::optional<std::int64_t> ignore_label;  // examples, or positions of a sequence, with this label do not count

  static constexpr Outputs outputs = Outputs::softmax_logits;
  static constexpr bool takes_parts_of_classes = true;

  static Declaration<SoftmaxCrossEntropy> declaration() {
    return declare::kind<SoftmaxCrossEntropy>(
        {.path = "softmax_cross_entropy",
         .meaning = "Cross-entropy of softmax(logits) and the targets, which are integer labels or class probabilities "
                    "(such as one-hot labels). For class probabilities, metrics use their argmax as the label.",
         .example = "loss: softmax_cross_entropy\nloss: {softmax_cross_entropy: {label_smoothing: 0.1}}"},
        field(&SoftmaxCrossEntropy::label_smoothing,
              {.path = "label_smoothing",
               .high = 1,
               .open_high = true,
               .varies = true,
               .structural = declare::Structural{0.0, "without smoothing the labels are used as they are"},
               .meaning = "Label smoothing: the share of each target's probability mass that is distributed uniformly "
                          "over all classes.",
               .example = "label_smoothing: 0.1"}),
        field(&SoftmaxCrossEntropy::class_weights, weights_key()),
        field(&SoftmaxCrossEntropy::ignore_label,
              {.path = "ignore_label",
               .low = std::numeric_limits<std::int32_t>::min(),
               .high = std::numeric_limits<std::int32_t>::max(),
               .meaning = "Examples with this label, or positions of a sequence, do not count: neither in the loss and "
                          "its gradient nor in the metrics, and the means divide by the number of the others. It need "
                          "not be a class. As PyTorch's ignore_index.",
               .example = "ignore_label: -100",
               .fallback_text = "none"}));
  }
  static constexpr const char *rest = "loss/label_smoothing/rest", *share = "loss/label_smoothing/share";

  void check(const LossChecks& checks) {
    checks.need_classes();
    if (checks.objective.has_padding && !ignore_label) ignore_label = label_of_padding;
    if (!checks.objective.output.empty()) checks.complete(class_weights, checks.objective.output.back());
    if (!ignore_label || !checks.objective.has_distributions()) return;
    checks.refuse("ignore_label takes class labels; the targets are " + checks.checks.targets(),
                  "remove it, or store one label for each example in place of class probabilities");
  }
  std::vector<Number> numbers(const Objective& objective) const {
    if (!(label_smoothing > 0.0)) return {};
    const double of_each = label_smoothing / static_cast<double>(objective.output.back());
    return {{rest, 1.0 - label_smoothing, objective.dtype}, {share, of_each, objective.dtype}};
  }
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    std::optional<Smoothing> smoothing;
    if (label_smoothing > 0.0) smoothing = {numbers[rest], numbers[share]};
    const Value entropy = softmax_cross_entropy(b, output, targets, smoothing, classes);
    if (class_weights.each.empty()) return position_mean(b, entropy, ignore_label);
    const Value weights = vector_constant(b, b.type(output).dtype, class_weights.each);
    if (!is_floating(b.type(targets).dtype)) {
      const Value weighed = mul(b, entropy, b.emit(ops::Gather{}, {weights, targets}));
      return position_mean(b, weighed, ignore_label);
    }
    const Value probabilities = cast(b, targets, b.type(output).dtype);
    const Value each = broadcast_along(b, weights, b.type(probabilities).shape, 1);
    return mul(b, entropy, sum_from(b, mul(b, probabilities, each), 1));
  }
};

}  // namespace pmaptrain::losses
