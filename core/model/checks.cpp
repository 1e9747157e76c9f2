#include "core/model/checks.h"

#include "core/base/text.h"
#include "core/model/loss.h"

namespace pmaptrain::model {
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
  const data::Field& target = model_.target;
  return target.stored.empty() ? shown(target.dtype, target.shape) : target.stored + to_string(target.shape);
}
std::string Checks::output() const { return shown(model_.dtype, model_.output); }

void Checks::refuse(const Place& place, std::string message, std::string help) const {
  errors_.push_back({"config", place, std::move(message), std::move(help), {}});
}

// Targets of a type that the loss or metric does not accept. If they are from a file, this is an error of the data.
void Checks::refuse_targets(const Place& place, const std::string& name, const std::string& takes,
                            const std::string& what, const std::string& help) const {
  const std::string& origin = model_.target.origin;
  const std::string found = "; the targets" + (origin.empty() ? "" : " in " + origin) + " are " + what + targets();
  const bool file = !origin.empty();
  errors_.push_back(
      {file ? "data" : "config", file ? spec_.data.source_place : place, name + " takes " + takes + found, help, {}});
}

void Checks::need_classes(const std::string& name, const Place& place, const std::string& instead) const {
  const Shape& logits = model_.output;
  // Labels of positions by the outputs, but read as one number for each class.
  const bool are_positions = model_.has_distributions() && !model_.target.stored.empty() && logits.size() > 1 &&
                             logits != model_.target.shape &&
                             numel(logits) == numel(model_.target.shape) * logits.back();
  if (are_positions || (!model_.has_labels() && model_.target.shape.size() > 1)) {
    refuse_targets(place, name, "one class label an example, or one for each token of an embedding", "",
                   place == model_.loss_place         ? labels_of_pixels_help
                   : spec::takes_numbers(model_.loss) ? instead + " takes targets like these"
                                                      : metrics_of_masks_help);
  } else if (!model_.has_labels() && !model_.has_distributions()) {
    const bool one = is_floating(model_.target.dtype) && numel(model_.target.shape) == 1;
    refuse_targets(place, name, "class labels", "",
                   instead + " takes targets like these" + (one ? "; if they are labels, store them as integers" : ""));
  } else if (model_.has_distributions() && model_.output != model_.target.shape) {
    refuse(place,
           name + " takes one logit for each class; the output of the model is " + output() + ", the targets are " +
               targets() + ": probabilities of " + std::to_string(model_.target.shape.front()) + " classes",
           "end the layers with flatten and dense: " + std::to_string(model_.target.shape.front()));
  } else if (model_.has_sequences()) {
    need_logits_of_positions(name, place);
  } else if (model_.output == Shape{1}) {
    refuse(place, name + " takes one logit for each class; the output of the model is " + output() + ", a single one",
           "for labels 0 and 1 use sigmoid_cross_entropy; else end the layers with dense: C for C classes");
  } else if (model_.output.size() != 1) {
    refuse(place, name + " takes one logit for each class, [C]; the output of the model is " + output(),
           "end the layers with flatten and dense: C");
  }
}

void Checks::need_logits_of_positions(const std::string& name, const Place& place) const {
  Shape positions = model_.output;
  if (!positions.empty()) positions.pop_back();
  if (!model_.output.empty() && positions == model_.target.shape) return;
  const std::string sizes = join_sizes(model_.target.shape);
  refuse(place,
         name + " takes one logit for each class at each position, [" + sizes + ", C]; the output of the model is " +
             output(),
         "end the layers with reshape: [" + sizes + ", C]");
}

void Checks::need_one_label(const std::string& name, const Place& place) const {
  if (!model_.has_sequences()) return;
  refuse(place, name + " takes one label for each example; the targets are " + targets(),
         "accuracy and perplexity take sequences of labels");
}

void Checks::need_numbers(const std::string& name, const Place& place, const std::string& instead) const {
  const std::int64_t each = quantiles_of(model_.loss);
  if (!is_floating(model_.target.dtype)) {
    refuse_targets(place, name, "numbers", "class labels ", instead + " takes labels");
  } else if (each > 1) {
    const std::int64_t outputs = each * numel(model_.target.shape);
    if (model_.output == Shape{outputs}) return;
    refuse(place,
           name + " needs " + std::to_string(outputs) + " outputs, one for each quantile of each number of a target; " +
               "the output of the model is " + output() + ", the targets are " + targets(),
           "end the layers with dense: " + std::to_string(outputs));
  } else if (model_.target.shape != model_.output) {
    const bool vector = model_.target.shape.size() == 1;
    const bool only_turned = numel(model_.target.shape) == numel(model_.output);
    refuse(place,
           name + " needs outputs and targets of equal shape; the output of the model is " + output() +
               ", the targets are " + targets(),
           vector && only_turned ? "end the layers with flatten"
           : vector              ? "end the layers with dense: " + std::to_string(model_.target.shape[0]) + if_labels()
           : only_turned         ? "end the layers with reshape: [" + join_sizes(model_.target.shape) + "]"
                                 : "the last layer must have the output shape " + to_string(model_.target.shape));
  }
}

// Integers that are read as numbers, where the model looks like one of classes.
std::string Checks::if_labels() const {
  const bool one = model_.target.shape == Shape{1} && model_.output.size() == 1 && model_.output.front() > 1;
  return one && spec_.data.numeric_targets ? "; for labels of classes use softmax_cross_entropy" : "";
}

}  // namespace pmaptrain::model
