#include "core/model/model.h"

#include <algorithm>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/layers/division.h"
#include "core/layers/table_embedding.h"
#include "core/losses/quantile.h"

namespace pmaptrain::model {
namespace {

void add_nodes(const std::vector<Node>& nodes, std::vector<const Node*>& out) {
  for (const Node& node : nodes) {
    add_nodes(node.children, out);
    if (!node.is_list()) out.push_back(&node);
  }
}

class Maker {
 public:
  Maker(const Options& options, Model& model) : options_(options), model_(model) {}

  void run() {
    check_normalize();
    // After a layer that does not fit, the output shape is unknown, so checks against it are omitted.
    if (plan_layers()) {
      settle_one_label();
      const Checks checks(model_, options_.data_place, options_.numeric_targets, errors_);
      check_loss(model_, options_.class_weights, checks);
      check_padding();
      for (const metrics::Metric& metric : options_.metrics) check_metric(metric, model_, checks);
      check_initial_values();
    }
    throw_errors();
    for (const metrics::Metric& metric : options_.metrics) {
      if (metric.kind->needs_rows()) {
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
    Activation at{model_.dtype, model_.input.shape, {}, {}};
    if (model_.has_lengths) at.lengths.emplace();
    if (const Layer* first = first_leaf(options_.layers)) {
      if (first->kind->takes_tokens()) {
        if (!is_floating(model_.input.dtype)) at.dtype = DType::i32;
        refuse_normalised_tokens();
      } else if (!check_takes_tokens(*first)) {
        return false;
      }
    }
    refuse_normalised_categories();
    const bool mixed = options_.precision == PrecisionPolicy::mixed_bfloat16;
    const Precision precision{model_.dtype, mixed ? DType::bf16 : model_.dtype};
    const Surroundings around{options_.mesh, options_.data_axes, options_.layers, options_.channels, options_.columns};
    if (!plan_list(options_.layers, "", around, precision, at, model_.layers, errors_)) return false;
    model_.output = at.shape;
    if (at.lengths && !fits_lengths(*at.lengths)) return false;
    if (!options_.tensor_axes.empty()) divide();
    if (options_.lora) adapt(*options_.lora, model_.layers, errors_);
    number_nodes(model_.layers);
    if (const auto nodes = model_.nodes(); !nodes.empty()) model_.last_layer = nodes.back()->kind;
    for_each_node(model_.layers, [&](const Node& node) {
      model_.parameters.insert(model_.parameters.end(), node.parameters.begin(), node.parameters.end());
    });
    return true;
  }

  void divide() {
    const Mesh& mesh = options_.mesh;
    DivideOptions options{options_.tensor_axes, mesh.group_size(options_.tensor_axes),
                          mesh.name(options_.tensor_axes.list().front())};
    options.divides_classes = model_.loss->takes_parts_of_classes() && model_.has_labels();
    const std::size_t before = errors_.size();
    model_.output_axes = divide_layers(model_.layers, options, errors_);
    if (options.devices == 1 || errors_.size() > before || any_is_divided(model_.layers)) return;
    refuse(options_.tensor_place,
           "no layer of this model is divided along '" + options.name + "', so its " + std::to_string(options.devices) +
               " devices would all compute the same",
           "layers that are divided are attention, swiglu, embedding, two dense or conv layers with nothing but "
           "elementwise layers or pooling between them, and a last dense layer of " +
               std::to_string(least_divided_classes) + " classes or more; make '" + options.name +
               "' an axis of data.axes, or remove it");
    for_each_node(model_.layers, [&](const Node& node) {
      std::vector<std::string>& notes = errors_.back().notes;
      if (notes.size() < 4 && !node.whole_because.empty()) notes.push_back(node.name + ": " + node.whole_because);
    });
  }

  // Refuses what takes no targets of positions with lengths.
  void check_padding() {
    if (model_.has_padding && model_.has_labels() && !model_.ignored_label()) {
      refuse(options_.loss_place,
             "sequences with lengths have a label for each position, which this loss does not take",
             "loss: softmax_cross_entropy leaves out those of padding");
    }
    // The data have zeros behind the lengths.
    const bool was_padded =
        model_.has_lengths && !model_.has_padding && is_floating(model_.target.dtype) && has_targets_of_positions();
    if (!was_padded) return;
    const std::string count = std::to_string(model_.target.shape.front());
    refuse(options_.data_place,
           "the targets are " + shown(model_.target.dtype, model_.target.shape) + ", numbers of the " + count +
               " positions of sequences with lengths, and the outputs have no positions",
           "leave out the layer that takes them away; or, if these are no numbers of positions, store targets "
           "y[:, None] and end the layers with reshape");
  }

  // Whether targets have the positions of the inputs.
  bool has_targets_of_positions() const {
    const Shape &target = model_.target.shape, &input = model_.input.shape;
    return !target.empty() && !input.empty() && target.front() == input.front();
  }

  // Whether outputs that have positions can be compared with targets of positions; reports it if not.
  bool fits_lengths(const Lengths& of_outputs) {
    const std::string leave = "global_avg_pool, global_max_pool or take leaves one value an example";
    const bool takes_numbers = is_floating(model_.target.dtype) &&
                               model_.outputs() != losses::Outputs::softmax_logits &&
                               losses::quantiles_of(model_.loss) == 1;
    model_.has_padding = model_.has_sequences() || (takes_numbers && has_targets_of_positions());
    model_.weighted = true;
    // Of one number at each position.
    const bool is_vector = model_.has_padded_numbers() && model_.target.shape.size() == 1;
    if (is_vector && model_.output == Shape{model_.target.shape.front(), 1}) model_.target.shape = model_.output;
    if (model_.has_padding && of_outputs == Lengths{}) return true;
    refuse(options_.loss_place,
           model_.has_padding
               ? "targets of positions need outputs at the positions that the inputs have; layers change the lengths"
               : "outputs have positions with lengths, " + shown(model_.dtype, model_.output) + ", and " +
                     no_targets_of_positions(),
           model_.has_padding    ? "padding: CAUSAL, or SAME without strides, keeps them; " + leave
           : has_other_numbers() ? "mean_squared_error takes these; " + leave
                                 : leave);
    return false;
  }

  // Whether targets are numbers of positions, which the loss does not take.
  bool has_other_numbers() const {
    return !model_.has_padding && is_floating(model_.target.dtype) && has_targets_of_positions();
  }

  std::string no_targets_of_positions() const {
    const std::string shape = shown(model_.target.dtype, model_.target.shape);
    if (has_other_numbers()) {
      return model_.loss->name() + " takes no numbers of each, " + shape;
    }
    return "targets are not one label or numbers for each: " + shape;
  }

  // A row with one label is one label, unless the model keeps its position.
  void settle_one_label() {
    if (!model_.has_labels() || numel(model_.target.shape) != 1) return;
    const bool keeps_position = model_.output.size() == 2 && model_.output.front() == 1;
    model_.target.shape = keeps_position ? Shape{1} : Shape{};
  }

  // The number of a category is no quantity.
  void refuse_normalised_categories() {
    const auto& normalize = model_.normalize;
    if (!normalize || !begins_with_table_embedding(options_.layers)) return;
    const auto changes = [](const std::vector<double>& values, std::size_t column, double otherwise) {
      const std::size_t at = values.size() == 1 ? 0 : column;
      return at < values.size() && values[at] != otherwise;
    };
    for (std::size_t i = 0; i < options_.columns.size(); ++i) {
      const InputColumn& column = options_.columns[i];
      if (column.categories == 0 || (!changes(normalize->mean, i, 0) && !changes(normalize->std, i, 1))) continue;
      refuse(model_.normalize_place,
             "normalize changes the numbers that stand for the categories of column '" + shown_name(column.name) +
                 "', which table_embedding takes",
             "normalize: auto leaves them as they are; in lists, mean 0 and std 1 do");
      return;
    }
  }

  void refuse_normalised_tokens() {
    if (!model_.normalize) return;
    refuse(model_.normalize_place, "normalize makes numbers of the inputs, but embedding takes integers", "remove it");
  }

  // Tokens are names, not quantities: a layer other than embedding takes them only where normalize makes them numbers.
  bool check_takes_tokens(const Layer& first) {
    if (options_.text_tokens == 0 || model_.normalize) return true;
    refuse(first.place,
           first.name + " takes numbers; the inputs are tokens, " + shown(model_.input.dtype, model_.input.shape),
           "begin with embedding: {num_embeddings: " + std::to_string(options_.text_tokens) +
               ", features: 128}; with data.normalize tokens are numbers");
    return false;
  }

  void check_initial_values() {
    std::vector<std::string> names;
    for (const Parameter& parameter : model_.parameters) names.push_back(parameter.name);
    for (const auto& [name, tensor] : options_.initial_values) {
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

  const Options& options_;
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

bool Model::has_remat() const {
  bool any = false;
  for_each_node(layers, [&](const Node& node) { any |= node.remat; });
  return any;
}

Model Model::without_remat() const {
  Model kept = *this;
  for_each_node(kept.layers, [](Node& node) { node.remat = false; });
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
    for (const Adapter& adapter : node.adapters) {
      if (adapter.drops) names.push_back(adapter.name + ".lora");
    }
  });
  return names;
}

std::vector<Number> Model::numbers() const {
  std::vector<Number> all;
  for_each_node(layers, [&](const Node& node) { all.insert(all.end(), node.numbers.begin(), node.numbers.end()); });
  if (lora) {
    const std::vector<Number> of_lora = lora_numbers(*lora, dtype);
    all.insert(all.end(), of_lora.begin(), of_lora.end());
  }
  const std::vector<Number> of_loss = loss_numbers(*this);
  all.insert(all.end(), of_loss.begin(), of_loss.end());
  return all;
}

Model make_model(const Options& options, const Field& input, const Field& target, DType dtype) {
  Model model;
  model.dtype = dtype;
  model.input = input;
  model.target = target;
  model.normalize = options.normalize;
  model.normalize_place = options.normalize_place;
  model.target_statistics = options.target_statistics;
  model.log_targets = options.log_targets;
  model.loss = options.loss;
  model.loss_place = options.loss_place;
  model.metrics_place = options.metrics_place;
  model.has_lengths = options.lengths;
  model.lora = options.lora;
  model.weighted = options.weighted_examples || options.loss->ignored_label();
  Maker(options, model).run();
  return model;
}

}  // namespace pmaptrain::model
