#include "core/model/model.h"

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "core/base/text.h"
#include "core/model/row_metrics.h"

namespace pmaptrain::model {
namespace {

std::string shown(DType dtype, const Shape& shape) { return std::string(to_string(dtype)) + to_string(shape); }

// "64" or "8, 8"
std::string join_sizes(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return join(sizes, ", ");
}

namespace metric = spec::metric;

template <class T, class... Others>
concept same_as_any = (std::same_as<T, Others> || ...);

void add_leaves(const std::vector<PlannedLayer>& layers, std::vector<const PlannedLayer*>& out) {
  for (const PlannedLayer& layer : layers) {
    if (layer.apply) {
      out.push_back(&layer);
    } else {
      add_leaves(layer.layers, out);
    }
  }
}

class Maker {
 public:
  Maker(const spec::Spec& spec, const data::Encoding& encoding, Model& model)
      : spec_(spec), class_weights_(encoding.class_weights), model_(model) {}

  void run() {
    check_normalize();
    // After a layer that does not fit, the output shape is unknown, so checks against it are omitted.
    if (plan_layers()) {
      check_loss();
      for (const spec::Metric& metric : spec_.metrics) check_metric(metric);
      check_initial_values();
    }
    throw_errors();
    for (const spec::Metric& metric : spec_.metrics) {
      if (needs_rows(metric)) {
        model_.row_metrics.push_back(metric);
      } else {
        model_.metrics.push_back(plan_metric(metric, model_));
      }
    }
  }

 private:
  void refuse(const Place& place, std::string message, std::string help) {
    errors_.push_back({"config", place, std::move(message), std::move(help), {}});
  }

  // Refuses targets of a type that `name`, the loss or a metric, does not accept. If they are from a file, this is an
  // error of the data.
  void refuse_targets(const Place& place, const std::string& name, const std::string& takes, const std::string& what,
                      const std::string& help) {
    const std::string& origin = model_.target.origin;
    const std::string found = "; the targets" + (origin.empty() ? "" : " in " + origin) + " are " + what + targets();
    const bool file = !origin.empty();
    errors_.push_back(
        {file ? "data" : "config", file ? spec_.data.source_place : place, name + " takes " + takes + found, help, {}});
  }

  void throw_errors() {
    if (errors_.empty()) return;
    const bool data =
        std::all_of(errors_.begin(), errors_.end(), [](const auto& error) { return error.kind == "data"; });
    throw Error(data ? ExitStatus::data : ExitStatus::usage, std::move(errors_));
  }

  void check_normalize() {
    if (!model_.normalize) return;
    const Shape& shape = model_.input.shape;
    const std::size_t channels = shape.empty() ? 1 : static_cast<std::size_t>(shape.back());
    const auto check = [&](const std::vector<double>& values, const std::string& what) {
      if (values.size() == 1 || values.size() == channels) return;
      refuse(model_.normalize_place,
             "normalize." + what + " has " + std::to_string(values.size()) + " values, but an input is " +
                 shown(model_.input.dtype, shape) + ": " + std::to_string(channels) +
                 (channels == 1 ? " channel" : " channels"),
             channels == 1 ? "give one value"
                           : "give one value for all channels, or " + std::to_string(channels) + " values");
    };
    check(model_.normalize->mean, "mean");
    check(model_.normalize->std, "std");
  }

  bool plan_layers() {
    Activation at{model_.dtype, model_.input.shape, {}};
    const bool mixed = spec_.precision == spec::PrecisionPolicy::mixed_bfloat16;
    const Precision precision{model_.dtype, mixed ? DType::bf16 : model_.dtype};
    if (!plan_list(spec_.model.layers, "", precision, at, model_.layers, errors_)) return false;
    model_.output = at.shape;
    for (const PlannedLayer* layer : model_.leaves()) {
      model_.parameters.insert(model_.parameters.end(), layer->parameters.begin(), layer->parameters.end());
    }
    return true;
  }

  std::string targets() const { return shown(model_.target.dtype, model_.target.shape); }
  std::string output() const { return shown(model_.dtype, model_.output); }

  // Checks for a loss or metric `name` of logits and labels.
  void need_classes(const std::string& name, const Place& place, const std::string& instead) {
    if (!model_.has_labels() && !model_.has_distributions()) {
      const bool one = is_floating(model_.target.dtype) && numel(model_.target.shape) == 1;
      refuse_targets(
          place, name, "class labels", "",
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

  void need_logits_of_positions(const std::string& name, const Place& place) {
    Shape positions = model_.output;
    if (!positions.empty()) positions.pop_back();
    if (!model_.output.empty() && positions == model_.target.shape) return;
    const std::string sizes = join_sizes(model_.target.shape);
    refuse(place,
           name + " takes one logit for each class at each position, [" + sizes + ", C]; the output of the model is " +
               output(),
           "end the layers with reshape: [" + sizes + ", C]");
  }

  // Refuses sequences of labels for a metric that takes one label for each example.
  void need_one_label(const std::string& name, const Place& place) {
    if (!model_.has_sequences()) return;
    refuse(place, name + " takes one label for each example; the targets are " + targets(),
           "accuracy and perplexity take sequences of labels");
  }

  // Checks for a loss or metric `name` of numbers. Shapes are never broadcast: (N) against (N,1) would give (N,N).
  void need_numbers(const std::string& name, const Place& place, const std::string& instead) {
    if (!is_floating(model_.target.dtype)) {
      refuse_targets(place, name, "numbers", "class labels ", instead + " takes labels");
    } else if (model_.target.shape != model_.output) {
      const bool vector = model_.target.shape.size() == 1;
      refuse(place,
             name + " needs outputs and targets of equal shape; the output of the model is " + output() +
                 ", the targets are " + targets(),
             vector ? "end the layers with dense: " + std::to_string(model_.target.shape[0]) + if_labels()
                    : "the last layer must have the output shape " + to_string(model_.target.shape));
    }
  }

  // Integers that are read as numbers, where the model looks like one of classes.
  std::string if_labels() const {
    const bool one = model_.target.shape == Shape{1} && model_.output.size() == 1 && model_.output.front() > 1;
    return one && spec_.data.numeric_targets ? "; for labels of classes use softmax_cross_entropy" : "";
  }

  void check_loss() {
    const auto check = [&](auto& loss) { check_targets_of(loss, spec::to_string(model_.loss)); };
    std::visit(check, model_.loss);
  }

  void check_targets_of(spec::SoftmaxCrossEntropy& softmax, const std::string& name) {
    need_classes(name, model_.loss_place, "mean_squared_error");
    if (!model_.output.empty()) check_weights(softmax.class_weights, name, model_.output.back());
  }

  // Those that balance the training split are for labels: classes of which it has no example weigh 1.
  void check_weights(spec::ClassWeights& weights, const std::string& name, std::int64_t classes) {
    const auto count = static_cast<std::size_t>(classes);
    if (weights.balanced && !model_.has_labels()) {
      refuse(model_.loss_place, "class_weights: balanced takes class labels; the targets are " + targets(),
             "list the weights of the classes");
    } else if (weights.balanced) {
      weights.each = class_weights_;
      weights.each.resize(count, 1.0);
    } else if (!weights.each.empty() && weights.each.size() != count) {
      refuse(model_.loss_place,
             name + " has " + std::to_string(weights.each.size()) + " class_weights; the model has " +
                 std::to_string(classes) + " classes",
             "list one weight for each class");
    }
  }

  void check_targets_of(spec::SigmoidCrossEntropy& sigmoid, const std::string& name) {
    const bool is_weighted = sigmoid.class_weights.balanced || !sigmoid.class_weights.each.empty();
    if (!model_.is_binary() && is_weighted) {
      refuse(model_.loss_place, name + " takes class_weights with labels 0 and 1 alone; the targets are " + targets(),
             "remove them, or use softmax_cross_entropy");
    }
    if (!model_.is_binary()) return need_numbers(name, model_.loss_place, "softmax_cross_entropy");
    check_weights(sigmoid.class_weights, name, 2);
    if (model_.output == Shape{1}) return;
    refuse(model_.loss_place, name + " takes one output for labels 0 and 1; the output of the model is " + output(),
           "end the layers with flatten and dense: 1, or use softmax_cross_entropy with one logit for each class");
  }

  template <class OfNumbers>
  requires same_as_any<OfNumbers, spec::MeanSquaredError, spec::MeanAbsoluteError, spec::Huber>
  void check_targets_of(const OfNumbers&, const std::string& name) {
    need_numbers(name, model_.loss_place, "softmax_cross_entropy");
  }

  void check_metric(const spec::Metric& metric) {
    std::visit([&](const auto& kind) { check_metric(kind, spec::to_string(metric), metric.place); }, metric.kind);
  }

  template <class OfClasses>
  requires same_as_any<OfClasses, metric::Accuracy, metric::Precision, metric::Recall, metric::F1, metric::RocAuc,
                       metric::ConfusionMatrix>
  void check_metric(const OfClasses&, const std::string& name, const Place& place) {
    if (!model_.is_binary()) need_classes(name, place, "mean_absolute_error");
    if constexpr (!std::is_same_v<OfClasses, metric::Accuracy>) need_one_label(name, place);
  }

  void check_metric(const metric::Perplexity&, const std::string& name, const Place& place) {
    need_classes(name, place, "mean_absolute_error");
  }

  void check_metric(const metric::TopKAccuracy& top, const std::string& name, const Place& place) {
    need_classes(name, place, "mean_absolute_error");
    need_one_label(name, place);
    if (model_.output.size() != 1 || top.k <= model_.output.front()) return;
    refuse(place,
           name + " needs the " + std::to_string(top.k) + " largest outputs, but the model has " +
               std::to_string(model_.output.front()),
           "set k to at most " + std::to_string(model_.output.front()));
  }

  template <class OfNumbers>
  requires same_as_any<OfNumbers, metric::MeanAbsoluteError, metric::MeanSquaredError, metric::RootMeanSquaredError,
                       metric::R2>
  void check_metric(const OfNumbers&, const std::string& name, const Place& place) {
    need_numbers(name, place, "accuracy");
  }

  void check_initial_values() {
    std::vector<std::string> names;
    for (const Parameter& parameter : model_.parameters) names.push_back(parameter.name);
    for (const auto& [name, tensor] : spec_.model.initial_values) {
      const Parameter* parameter = nullptr;
      for (const Parameter& candidate : model_.parameters) {
        if (candidate.name == name) parameter = &candidate;
      }
      if (parameter == nullptr) {
        const std::string near = nearest(name, names);
        refuse(tensor.place, "model.init names '" + name + "', which is not a parameter of this model",
               near.empty() ? "its parameters are " + join(names, ", ") : "did you mean '" + near + "'?");
      } else if (tensor.shape != parameter->shape) {
        refuse(tensor.place,
               "model.init has '" + name + "' with the shape " + to_string(tensor.shape) + "; the parameter is " +
                   shown(model_.dtype, parameter->shape),
               "write nested lists of shape " + to_string(parameter->shape));
      }
    }
  }

  const spec::Spec& spec_;
  const std::vector<double>& class_weights_;  // that balance the training split
  Model& model_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += numel(parameter.shape);
  return count;
}

std::int64_t Model::classes() const {
  if (std::holds_alternative<spec::SoftmaxCrossEntropy>(loss)) return output.back();
  return is_binary() ? 2 : 0;
}

std::vector<const PlannedLayer*> Model::leaves() const {
  std::vector<const PlannedLayer*> found;
  add_leaves(layers, found);
  return found;
}

std::vector<std::string> Model::drawing_layers() const {
  std::vector<std::string> names;
  for (const PlannedLayer* layer : leaves()) {
    if (layer->draws) names.push_back(layer->name);
  }
  return names;
}

std::vector<Number> Model::numbers() const {
  std::vector<Number> all;
  for (const PlannedLayer* layer : leaves()) all.insert(all.end(), layer->numbers.begin(), layer->numbers.end());
  const std::vector<Number> of_loss = loss_numbers(*this);
  all.insert(all.end(), of_loss.begin(), of_loss.end());
  return all;
}

Model make_model(const spec::Spec& spec, const data::Field& input, const data::Field& target, DType dtype,
                 const data::Encoding& encoding) {
  // What the config leaves to the training split.
  const auto learned = [](const std::optional<data::Encoding::Statistics>& statistics, const std::string& key,
                          const Place& place) {
    if (statistics) return *statistics;
    throw Error(ExitStatus::usage,
                Diagnostic{"config",
                           place,
                           key + ": auto has no statistics of the training split to take",
                           "a run that was trained with " + key + ": auto has them in its checkpoints",
                           {}});
  };
  Model model;
  model.dtype = dtype;
  model.input = input;
  model.target = target;
  model.normalize = spec.data.normalize;
  if (model.normalize && model.normalize->automatic) {
    const data::Encoding::Statistics statistics = learned(encoding.statistics, "normalize", spec.data.normalize_place);
    model.normalize->mean = statistics.mean;
    model.normalize->std = statistics.std;
  }
  if (spec.data.normalize_targets && is_floating(target.dtype)) {
    model.target_statistics = learned(encoding.targets, "normalize_targets", spec.data.normalize_targets_place);
  }
  model.normalize_place = spec.data.normalize_place;
  model.loss = spec.loss;
  model.loss_place = spec.loss_place;
  model.metrics_place = spec.metrics_place;
  model.weighted = spec::has_weights(spec.data.source);
  Maker(spec, encoding, model).run();
  return model;
}

}  // namespace pmaptrain::model
