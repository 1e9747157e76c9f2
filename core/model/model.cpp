#include "core/model/model.h"

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/model/checks.h"
#include "core/model/row_metrics.h"

namespace pmaptrain::model {
namespace {

void add_nodes(const std::vector<Node>& nodes, std::vector<const Node*>& out) {
  for (const Node& node : nodes) {
    add_nodes(node.children, out);
    if (!node.is_list()) out.push_back(&node);
  }
}

// All nodes, each before its children: the order of parameters, keys and numbers.
template <class Visit>
void for_each_node(const std::vector<Node>& nodes, const Visit& visit) {
  for (const Node& node : nodes) {
    visit(node);
    for_each_node(node.children, visit);
  }
}

void keep_activations(std::vector<Node>& nodes) {
  for (Node& node : nodes) {
    node.remat = false;
    keep_activations(node.children);
  }
}

// The first layer that has no others inside.
const spec::Layer* first_leaf(const std::vector<spec::Layer>& layers) {
  for (const spec::Layer& layer : layers) {
    const std::vector<spec::Layer>* inside = nullptr;
    if (const auto* list = std::get_if<spec::Layers>(&layer.kind)) inside = &list->layers;
    if (const auto* repeat = std::get_if<spec::Repeat>(&layer.kind)) inside = &repeat->layers;
    if (const auto* residual = std::get_if<spec::Residual>(&layer.kind)) inside = &residual->layers;
    if (inside == nullptr) return &layer;
    if (const spec::Layer* found = first_leaf(*inside)) return found;
  }
  return nullptr;
}

class Maker {
 public:
  Maker(const spec::Spec& spec, const data::Encoding& encoding, Model& model)
      : spec_(spec), class_weights_(encoding.class_weights), model_(model) {}

  void run() {
    check_normalize();
    // After a layer that does not fit, the output shape is unknown, so checks against it are omitted.
    if (plan_layers()) {
      settle_one_label();
      const Checks checks(spec_, model_, errors_);
      check_loss(model_, class_weights_, checks);
      for (const spec::Metric& metric : spec_.metrics) check_metric(metric, model_, checks);
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
    if (const spec::Layer* first = first_leaf(spec_.model.layers)) {
      if (std::holds_alternative<spec::Embedding>(first->kind)) {
        if (!is_floating(model_.input.dtype)) at.dtype = DType::i32;
        refuse_normalised_tokens();
      } else if (!check_takes_tokens(*first)) {
        return false;
      }
    }
    const bool mixed = spec_.precision == spec::PrecisionPolicy::mixed_bfloat16;
    const Precision precision{model_.dtype, mixed ? DType::bf16 : model_.dtype};
    if (!plan_list(spec_.model.layers, "", spec_, precision, at, model_.layers, errors_)) return false;
    model_.output = at.shape;
    number_nodes(model_.layers);
    for_each_node(model_.layers, [&](const Node& node) {
      model_.parameters.insert(model_.parameters.end(), node.parameters.begin(), node.parameters.end());
    });
    return true;
  }

  // A row with one label is one label, unless the model keeps its position.
  void settle_one_label() {
    if (!model_.has_labels() || numel(model_.target.shape) != 1) return;
    const bool keeps_position = model_.output.size() == 2 && model_.output.front() == 1;
    model_.target.shape = keeps_position ? Shape{1} : Shape{};
  }

  void refuse_normalised_tokens() {
    if (!model_.normalize) return;
    refuse(model_.normalize_place, "normalize makes numbers of the inputs, but embedding takes integers", "remove it");
  }

  // Tokens are names, not quantities: a layer other than embedding takes them only where normalize makes them numbers.
  bool check_takes_tokens(const spec::Layer& first) {
    const auto* const text = std::get_if<spec::TextFiles>(&spec_.data.source);
    if (text == nullptr || model_.normalize) return true;
    const std::string most = text->tokens == spec::Tokens::bytes ? "256" : "65536";
    refuse(
        first.place,
        first.name + " takes numbers; the inputs are tokens, " + shown(model_.input.dtype, model_.input.shape),
        "begin with embedding: {num_embeddings: " + most + ", features: 128}; with data.normalize tokens are numbers");
    return false;
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

Model::Model() = default;
Model::Model(const Model&) = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(const Model&) = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

namespace {

void number_nodes(std::vector<Node>& nodes, std::size_t& parameters, std::size_t& keys) {
  for (Node& node : nodes) {
    node.first_parameter = parameters;
    node.key = keys;
    parameters += node.parameters.size();
    keys += node.draws ? 1 : 0;
    number_nodes(node.children, parameters, keys);
  }
}

void set_shared(std::vector<Node>& nodes, const std::map<std::string, std::size_t>& places) {
  for (Node& node : nodes) {
    if (!node.shared_name.empty()) node.shared = places.at(node.shared_name);
    set_shared(node.children, places);
  }
}

}  // namespace

void number_nodes(std::vector<Node>& nodes) {
  std::size_t parameters = 0, keys = 0;
  number_nodes(nodes, parameters, keys);
  std::map<std::string, std::size_t> places;
  for_each_node(nodes, [&](const Node& node) {
    for (std::size_t i = 0; i < node.parameters.size(); ++i) places[node.parameters[i].name] = node.first_parameter + i;
  });
  set_shared(nodes, places);
}

const Node* first_layer(std::span<const Node> nodes) {
  for (const Node& node : nodes) {
    if (node.children.empty() && !node.is_list()) return &node;
    if (const Node* found = first_layer(node.children)) return found;
  }
  return nullptr;
}

bool Model::has_remat() const {
  bool any = false;
  for_each_node(layers, [&](const Node& node) { any |= node.remat; });
  return any;
}

Model Model::without_remat() const {
  Model kept = *this;
  keep_activations(kept.layers);
  return kept;
}

bool Model::takes_tokens() const {
  const Node* first = first_layer(layers);
  return first != nullptr && first->takes_tokens;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.is_state ? 0 : numel(parameter.shape);
  return count;
}

bool Model::has_statistics() const {
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& parameter) { return parameter.is_state; });
}

spec::Outputs Model::outputs() const {
  if (!std::holds_alternative<spec::Focal>(loss)) return outputs_of(loss);
  const bool each = output == Shape{1} || (target.shape.size() == 1 && target.shape == output);
  return each ? spec::Outputs::sigmoid_logits : spec::Outputs::softmax_logits;
}

std::int64_t Model::classes() const {
  if (outputs() == spec::Outputs::softmax_logits) return output.back();
  return is_binary() ? 2 : 0;
}

std::vector<const Node*> Model::nodes() const {
  std::vector<const Node*> found;
  add_nodes(layers, found);
  return found;
}

std::vector<bool> Model::lookup_tables() const {
  std::vector<bool> found(parameters.size(), false);
  for_each_node(layers, [&](const Node& node) {
    if (node.takes_tokens && node.children.empty()) found[node.first_parameter] = true;
  });
  for_each_node(layers, [&](const Node& node) {
    if (!node.shared_name.empty()) found[node.shared] = false;
  });
  return found;
}

std::vector<std::string> Model::drawing_layers() const {
  std::vector<std::string> names;
  for_each_node(layers, [&](const Node& node) {
    if (node.draws) names.push_back(node.name);
  });
  return names;
}

std::vector<Number> Model::numbers() const {
  std::vector<Number> all;
  for_each_node(layers, [&](const Node& node) { all.insert(all.end(), node.numbers.begin(), node.numbers.end()); });
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
    const std::vector<spec::TargetScale> scales = spec::target_scales(spec.data, numel(target.shape));
    for (const spec::TargetScale scale : scales) model.log_targets.push_back(scale == spec::TargetScale::log);
    if (std::count(model.log_targets.begin(), model.log_targets.end(), true) == 0) model.log_targets.clear();
  }
  model.normalize_place = spec.data.normalize_place;
  model.loss = spec.loss;
  model.loss_place = spec.loss_place;
  model.metrics_place = spec.metrics_place;
  model.weighted = spec::has_weights(spec.data.source) || spec::ignored_label(spec.loss);
  Maker(spec, encoding, model).run();
  return model;
}

}  // namespace pmaptrain::model
