// Binary cross-entropy of sigmoid(logits), and its mean over the outputs.
#pragma once

#include "core/losses/keys.h"

namespace pmaptrain::losses {

struct SigmoidCrossEntropy {
  ClassWeights class_weights;
  ClassWeights positive_weights;  // one for each output

  static constexpr Outputs outputs = Outputs::sigmoid_logits;

  static Declaration<SigmoidCrossEntropy> declaration() {
    return declare::kind<SigmoidCrossEntropy>(
        {.path = "sigmoid_cross_entropy",
         .meaning = "Binary cross-entropy of sigmoid(logits) and the targets, averaged over the outputs. Targets are "
                    "probabilities from 0 to 1, or labels 0 and 1 for a single output.",
         .example = "loss: sigmoid_cross_entropy"},
        field(&SigmoidCrossEntropy::class_weights, weights_key()),
        field(
            &SigmoidCrossEntropy::positive_weights,
            {.path = "positive_weights",
             .high = declare::unbounded,
             .words = {"balanced"},
             .meaning = "One weight for each output, which scales the part of the loss that is due to targets of 1, as "
                        "PyTorch's pos_weight. balanced: negatives / positives of each label in the training split.",
             .example = "positive_weights: [3.0, 10.0]\npositive_weights: balanced",
             .fallback_text = "1 for every output"}));
  }
  void check(const LossChecks& given) {
    const auto& [checks, objective, name, balanced] = given;
    const auto is_set = [](const ClassWeights& weights) { return weights.balanced || !weights.each.empty(); };
    if (!objective.is_binary() && is_set(class_weights)) {
      given.refuse(name + " takes class_weights with labels 0 and 1 alone; the targets are " + checks.targets(),
                   "remove them, or use softmax_cross_entropy; for several labels there are positive_weights");
    } else if (is_set(class_weights) && is_set(positive_weights)) {
      given.refuse(name + " takes class_weights or positive_weights, not both", "remove one of them");
    }
    given.need_sigmoids();
    if (objective.is_binary()) given.complete(class_weights, 2);
    const std::size_t count = objective.output.empty() ? 0 : static_cast<std::size_t>(numel(objective.output));
    if (positive_weights.balanced) {
      positive_weights.each = balanced;
      positive_weights.each.resize(count, 1.0);
    } else if (!positive_weights.each.empty() && positive_weights.each.size() != count) {
      given.refuse(name + " has " + std::to_string(positive_weights.each.size()) + " positive_weights; the model has " +
                       std::to_string(count) + " outputs",
                   "list one weight for each output");
    }
    if (!positive_weights.each.empty() && objective.output.size() != 1) {
      given.refuse(name + " takes positive_weights of labels, [L]; the output of the model is " + checks.output(),
                   "remove them");
      positive_weights.each.clear();
    }
  }
  std::vector<Number> numbers(const Objective&) const { return {}; }
  // softplus(x) - x t, which is -t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)). With a weight w of positives the first
  // term is w t softplus(-x), and softplus(-x) = softplus(x) - x.
  Value losses(const LossCall& call) const {
    const auto& [b, output, targets, numbers, inside, classes] = call;
    const Value expected = targets_like(b, output, targets);
    const Value all = softplus(b, output);
    Value each = sub(b, all, mul(b, output, expected));
    if (!positive_weights.each.empty()) {
      std::vector<double> more = positive_weights.each;
      for (double& weight : more) weight -= 1;
      const Value positive = mul(b, expected, sub(b, all, output));
      each = add(b, each, mul(b, of_features(b, output, more), positive));
    }
    const Value entropy = call.mean(each);
    if (class_weights.each.empty()) return entropy;
    const Value weights = vector_constant(b, b.type(output).dtype, class_weights.each);
    return mul(b, entropy, b.emit(ops::Gather{}, {weights, targets}));
  }
};

}  // namespace pmaptrain::losses
