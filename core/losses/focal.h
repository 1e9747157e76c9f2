// The focal loss (Lin et al., "Focal loss for dense object detection", 2017).
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct Focal {
  double gamma = 2.0;
  std::optional<double> alpha;

  static constexpr Outputs outputs = Outputs::softmax_logits;  // or sigmoid_logits: Objective::outputs

  static Declaration<Focal> declaration() {
    return declare::kind<Focal>(
        {.path = "focal",
         .meaning =
             "The focal loss, (1 - p)^gamma * cross-entropy, where p is the probability that the outputs give to "
             "the target: of softmax(logits) for class labels, of sigmoid(logits) for labels 0 and 1 (one output) "
             "and for several labels, averaged over the outputs, as torchvision's sigmoid_focal_loss.",
         .example = "loss: focal\nloss: {focal: {gamma: 2.0, alpha: 0.25}}"},
        field(&Focal::gamma, {.path = "gamma",
                              .high = declare::unbounded,
                              .varies = true,
                              .meaning = "How much examples count less that are predicted well; 0 is cross-entropy.",
                              .example = "gamma: 2.0"}),
        field(&Focal::alpha,
              {.path = "alpha",
               .high = 1,
               .meaning = "With sigmoids, the weight of targets of 1; that of targets of 0 is 1 - alpha.",
               .example = "alpha: 0.25",
               .fallback_text = "none"}));
  }
  void check(const LossChecks& given) const {
    const auto& [checks, objective, name, balanced] = given;
    if (objective.outputs() == Outputs::sigmoid_logits) return given.need_sigmoids();
    given.need_classes();
    if (objective.has_distributions()) {
      given.refuse(name + " takes class labels; the targets are " + checks.targets(),
                   "store one label for each example in place of class probabilities");
    }
    if (!alpha) return;
    given.refuse(name + " takes alpha with labels 0 and 1 and with several labels; the model has " +
                     std::to_string(objective.output.empty() ? 0 : objective.output.back()) + " classes",
                 "remove alpha, or use softmax_cross_entropy with class_weights");
  }
  std::vector<Number> numbers(const Objective& objective) const { return {{"loss/gamma", gamma, objective.dtype}}; }
  // (1 - p)^gamma · -log p, as exp(gamma · log(1 - p)), where p is the probability of the target.
  static Value weighed(Builder& b, Value entropy, Value log_rest, Value gamma_value) {
    return mul(b, entropy, b.emit(ops::Exp{}, {mul(b, log_rest, gamma_value)}));
  }
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const bool sigmoids = b.type(output).shape == b.type(targets).shape || b.type(output).shape.back() == 1;
    if (!sigmoids) {
      const Value entropy = softmax_cross_entropy(b, output, targets);
      // log(1 - p), with 1 - p = -expm1(-entropy), which is at least the smallest normal number.
      const Value rest = b.emit(ops::Neg{}, {b.emit(ops::Expm1{}, {b.emit(ops::Neg{}, {entropy})})});
      const Value bounded = b.emit(ops::Max{}, {rest, scalar_like(b, rest, 1e-30)});
      return position_mean(b, weighed(b, entropy, b.emit(ops::Log{}, {bounded}), numbers["loss/gamma"]), std::nullopt);
    }
    // With z = x for targets of 1 and -x for those of 0: entropy softplus(-z), log(1 - p) = -softplus(z). Of targets
    // between both, 1 - p = s (1 - t) + (1 - s) t, as torchvision has it.
    const Value expected = targets_like(b, output, targets);
    const Value all = softplus(b, output);
    const Value entropy = sub(b, all, mul(b, output, expected));
    const Value chance = sigmoid(b, output);
    const Value other = sub(b, scalar_like(b, expected, 1.0), expected);
    const Value of_negative = mul(b, chance, other);
    const Value of_positive = mul(b, sub(b, scalar_like(b, chance, 1.0), chance), expected);
    const Value rest = add(b, of_negative, of_positive);
    const Value bounded = b.emit(ops::Max{}, {rest, scalar_like(b, rest, 1e-30)});
    Value each = weighed(b, entropy, b.emit(ops::Log{}, {bounded}), numbers["loss/gamma"]);
    if (alpha) {
      const Value of_positives = mul(b, expected, *alpha);
      each = mul(b, each, add(b, of_positives, mul(b, other, 1 - *alpha)));
    }
    return call.mean(each);
  }
};

}  // namespace pmaptrain::losses
