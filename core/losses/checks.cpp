#include "core/base/text.h"
#include "core/losses/objective.h"
#include "core/losses/quantile.h"

namespace pmaptrain::losses {
namespace {

// "64" or "8, 8"
std::string join_sizes(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return join(sizes, ", ");
}

}  // namespace

std::string shown(DType dtype, const Shape& shape) { return std::string(to_string(dtype)) + to_string(shape); }

std::string Checks::targets() const {
  const Field& target = objective_.target;
  return target.stored.empty() ? shown(target.dtype, target.shape) : target.stored + to_string(target.shape);
}
std::string Checks::output() const { return shown(objective_.dtype, objective_.output); }

void Checks::refuse(const Place& place, std::string message, std::string help) const {
  errors_.push_back({"config", place, std::move(message), std::move(help), {}});
}

// Targets of a type that the loss or metric does not accept. If they are from a file, this is an error of the data.
void Checks::refuse_targets(const Place& place, const std::string& name, const std::string& takes,
                            const std::string& what, const std::string& help) const {
  const std::string& origin = objective_.target.origin;
  const std::string found = "; the targets" + (origin.empty() ? "" : " in " + origin) + " are " + what + targets();
  const bool file = !origin.empty();
  errors_.push_back({file ? "data" : "config", file ? source_ : place, name + " takes " + takes + found, help, {}});
}

void Checks::need_classes(const std::string& name, const Place& place, const std::string& instead) const {
  const Shape& logits = objective_.output;
  // Labels of positions by the outputs, but read as one number for each class.
  const bool are_positions = objective_.has_distributions() && !objective_.target.stored.empty() && logits.size() > 1 &&
                             logits != objective_.target.shape &&
                             numel(logits) == numel(objective_.target.shape) * logits.back();
  if (are_positions || (!objective_.has_labels() && objective_.target.shape.size() > 1)) {
    refuse_targets(place, name, "one class label an example, or integer labels of its positions", "",
                   place == objective_.loss_place   ? labels_of_pixels_help
                   : takes_numbers(objective_.loss) ? instead + " takes targets like these"
                                                    : metrics_of_masks_help);
  } else if (!objective_.has_labels() && !objective_.has_distributions()) {
    const bool one = is_floating(objective_.target.dtype) && numel(objective_.target.shape) == 1;
    refuse_targets(place, name, "class labels", "",
                   instead + " takes targets like these" + (one ? "; if they are labels, store them as integers" : ""));
  } else if (objective_.has_distributions() && objective_.output != objective_.target.shape) {
    refuse(place,
           name + " takes one logit for each class; the output of the model is " + output() + ", the targets are " +
               targets() + ": probabilities of " + std::to_string(objective_.target.shape.front()) + " classes",
           "end the layers with flatten and dense: " + std::to_string(objective_.target.shape.front()));
  } else if (objective_.has_sequences()) {
    need_logits_of_positions(name, place);
  } else if (objective_.output == Shape{1}) {
    refuse(place, name + " takes one logit for each class; the output of the model is " + output() + ", a single one",
           "for labels 0 and 1 use sigmoid_cross_entropy; else end the layers with dense: C for C classes");
  } else if (objective_.output.size() != 1) {
    refuse(place, name + " takes one logit for each class, [C]; the output of the model is " + output(),
           "end the layers with flatten and dense: C");
  }
}

void Checks::need_logits_of_positions(const std::string& name, const Place& place) const {
  Shape positions = objective_.output;
  if (!positions.empty()) positions.pop_back();
  if (!objective_.output.empty() && positions == objective_.target.shape) return;
  const std::string sizes = join_sizes(objective_.target.shape);
  const bool are_pixels = objective_.target.shape.size() == 2;
  refuse(place,
         name + " takes one logit for each class at each position, [" + sizes + ", C]; the output of the model is " +
             output(),
         objective_.output == objective_.target.shape ? "one-hot masks are saved as labels: in NumPy, y.argmax(-1)"
         : are_pixels ? "end the layers with conv: {features: C, kernel_size: [1, 1]}, at the size of the labels"
                      : "end the layers with reshape: [" + sizes + ", C]");
}

void Checks::need_one_label(const std::string& name, const Place& place) const {
  if (!objective_.has_sequences()) return;
  refuse(place, name + " takes one label for each example; the targets are " + targets(),
         "accuracy, f1, mean_iou and perplexity take labels of positions");
}

void Checks::need_numbers(const std::string& name, const Place& place, const std::string& instead) const {
  const std::int64_t each = quantiles_of(objective_.loss);
  if (!is_floating(objective_.target.dtype)) {
    refuse_targets(place, name, "numbers", "class labels ", instead + " takes labels");
  } else if (each > 1) {
    const std::int64_t outputs = each * numel(objective_.target.shape);
    if (objective_.output == Shape{outputs}) return;
    refuse(place,
           name + " needs " + std::to_string(outputs) + " outputs, one for each quantile of each number of a target; " +
               "the output of the model is " + output() + ", the targets are " + targets(),
           "end the layers with dense: " + std::to_string(outputs));
  } else if (objective_.target.shape != objective_.output) {
    const bool vector = objective_.target.shape.size() == 1;
    const bool is_padded = objective_.has_padded_numbers() && objective_.target.shape.size() < 3;
    const bool only_turned = numel(objective_.target.shape) == numel(objective_.output);
    refuse(place,
           name + " needs outputs and targets of equal shape; the output of the model is " + output() +
               ", the targets are " + targets(),
           is_padded ? "end the layers with dense: " + std::to_string(vector ? 1 : objective_.target.shape.back()) +
                           ", the numbers of each position"
           : vector && only_turned ? "end the layers with flatten"
           : vector      ? "end the layers with dense: " + std::to_string(objective_.target.shape[0]) + if_labels()
           : only_turned ? "end the layers with reshape: [" + join_sizes(objective_.target.shape) + "]"
                         : "the last layer must have the output shape " + to_string(objective_.target.shape));
  }
}

// Integers that are read as numbers, where the model looks like one of classes.
std::string Checks::if_labels() const {
  const bool one =
      objective_.target.shape == Shape{1} && objective_.output.size() == 1 && objective_.output.front() > 1;
  return one && reads_integers_ ? "; for labels of classes use softmax_cross_entropy" : "";
}

void LossChecks::need_sigmoids() const {
  if (objective.has_labels() && objective.target.shape.size() == 1) {
    if (objective.output == objective.target.shape) return;
    const std::string labels = std::to_string(objective.target.shape.front());
    refuse(name + " takes one output for each of " + labels + " labels; the output of the model is " + checks.output() +
               ", the targets are " + checks.targets(),
           "end the layers with dense: " + labels);
  } else if (!objective.is_binary()) {
    need_numbers();
  } else if (objective.output != Shape{1}) {
    refuse(name + " takes one output for labels 0 and 1; the output of the model is " + checks.output(),
           "end the layers with flatten and dense: 1, or use softmax_cross_entropy with one logit for each class");
  }
}

void LossChecks::complete(ClassWeights& weights, std::int64_t classes) const {
  const auto count = static_cast<std::size_t>(classes);
  if (weights.balanced && !objective.has_labels()) {
    refuse("class_weights: balanced takes class labels; the targets are " + checks.targets(),
           "list the weights of the classes");
  } else if (weights.balanced) {
    weights.each = balanced;
    weights.each.resize(count, 1.0);
  } else if (!weights.each.empty() && weights.each.size() != count) {
    refuse(name + " has " + std::to_string(weights.each.size()) + " class_weights; the model has " +
               std::to_string(classes) + " classes",
           "list one weight for each class");
  }
}

void check_loss(Objective& objective, const std::vector<double>& class_weights, const Checks& checks) {
  const LossChecks of_loss{checks, objective, objective.loss->name(), class_weights};
  objective.loss = objective.loss->checked(of_loss);
}

}  // namespace pmaptrain::losses
