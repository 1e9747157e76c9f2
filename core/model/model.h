// The model of a config, checked against its data: layers, parameters, loss and metrics; and the equations of the
// forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

// A value that is summed over examples and divided by their number; metrics are computed from one or more parts.
struct MeasurePart {
  std::string name;
  Shape shape;
  bool is_f64 = false;  // f64 instead of the model's dtype, because the metric subtracts large sums
};

// Marks the rows of a device that are examples; the others are padding. Where labels of sequences are ignored, it marks
// the positions that count: of T positions each has a T-th of the weight of its example.
struct ExampleMask {
  Value count;    // bool[B], or [B,T]: true for what counts
  Value weights;  // the same shape, of the model's dtype: 1 unless examples are weighted; 0 for what does not count
  bool weighted = false;
};

// `values` [B, ...] multiplied by the weights of their examples or positions. What does not count becomes 0 by
// `select`: a multiplication of ∞ by 0 would give NaN.
Value masked(Builder& b, const ExampleMask& rows, Value values);

// A metric as sums over examples and a function of these sums. Its values therefore do not depend on how the examples
// are split into batches, devices and microbatches.
struct PlannedMetric {
  std::vector<std::string> names;  // of its values
  std::vector<MeasurePart> parts;
  // The sum of each part over the rows of this device.
  std::function<std::vector<Value>(Builder& b, Value output, Value targets, const ExampleMask& rows)> sums;
  // Computes the values from the means of the parts over all examples.
  std::function<std::vector<double>(std::span<const std::vector<double>> means)> finish;
};

struct Model {
  DType dtype = DType::f32;  // of parameters, their gradients and the output
  data::Field input, target;
  std::optional<spec::Normalize> normalize;
  Place normalize_place;
  // With data.normalize_targets: the mean and the standard deviation of each number of a target. The last layer's
  // output and the loss are then in normalised units, (target - mean) / std.
  std::optional<data::Encoding::Statistics> target_statistics;
  std::vector<bool> log_targets;      // whether these are of log(1 + target), by number; empty where none is
  std::vector<Node> layers;           // applied in order
  std::vector<Parameter> parameters;  // of all nodes; Node::first_parameter says where
  Shape output;                       // of one example
  spec::Loss loss;
  Place loss_place;
  std::vector<PlannedMetric> metrics;
  std::vector<spec::Metric> row_metrics;  // row_metrics.h
  Place metrics_place;
  // Examples have weights, or labels are ignored, so measures and gradients are weighted means.
  bool weighted = false;

  std::int64_t parameter_count() const;  // elements, without statistics
  bool has_statistics() const;
  // The nodes that compute something (all but lists), in the order of their results: a residual connection comes after
  // its layers.
  std::vector<const Node*> nodes() const;
  // Whether the backward pass computes activations of some layers again, and the same model with all of them kept.
  bool has_remat() const;
  Model without_remat() const;
  // Whether the inputs are indices into the table of an embedding layer, not numbers.
  bool takes_tokens() const;
  // By parameter: whether it is the table of an embedding layer, of which no layer reads more than the rows at the
  // inputs.
  std::vector<bool> lookup_tables() const;
  // Class labels: one for each example, or one for each position of a sequence [L].
  bool has_labels() const { return target.dtype == DType::i32; }
  bool has_sequences() const { return has_labels() && !target.shape.empty() && !is_multi_label(); }
  // What the loss takes the outputs for; that of focal depends on the targets.
  spec::Outputs outputs() const;
  // Several labels for each example, [L] of 0 and 1, with a sigmoid for each.
  bool is_multi_label() const {
    return target.shape.size() == 1 && target.shape == output && outputs() == spec::Outputs::sigmoid_logits;
  }
  // Targets of softmax_cross_entropy that are class probabilities [C] in place of a label, such as one-hot rows.
  bool has_distributions() const {
    return is_floating(target.dtype) && target.shape.size() == 1 && target.shape.front() > 1 &&
           outputs() == spec::Outputs::softmax_logits;
  }
  // Labels 0 and 1 for one logit, with sigmoid_cross_entropy.
  bool is_binary() const { return has_labels() && target.shape.empty() && outputs() == spec::Outputs::sigmoid_logits; }
  // With ignore_label: examples, or positions of a sequence, with this label do not count.
  std::optional<std::int64_t> ignored_label() const { return spec::ignored_label(loss); }
  // The number of classes if the loss takes labels; else 0.
  std::int64_t classes() const;
  // The classes or labels that metrics have values of.
  std::int64_t measured_classes() const { return is_multi_label() ? output.front() : classes(); }
  // The names of the nodes that draw random numbers; Node::key is the place. Each has a hyper input "dropout/<name>".
  std::vector<std::string> drawing_layers() const;
  // The numbers (numbers.h) that training reads: those of the layers in order, then those of the loss.
  std::vector<Number> numbers() const;

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();
};

// Checks the layers, normalisation, loss, metrics and initial values of the spec against the fields of the data. Throws
// one Error that lists all mistakes. Its exit status is usage, or data if the only mistake is the type of the targets
// in a file. dtype f64 is for checking derivatives. With `normalize: auto` and `normalize_targets: auto` the numbers
// are those of `encoding`; throws Error (usage) if it has none.
Model make_model(const spec::Spec& spec, const data::Field& input, const data::Field& target, DType dtype = DType::f32,
                 const data::Encoding& encoding = {});

// Throws Error (data), placed at the source of the data in the config, if the loss does not accept the targets of
// `split`: labels out of range, or all ignored, invalid class probabilities, or numbers outside of [0, 1] for
// sigmoid_cross_entropy. Reads the targets up to the first invalid one. `empty_folders` (data::Source) are named where
// they are classes too many.
void check_targets(const Model& model, const data::Dataset& split, const Place& source,
                   const std::vector<std::string>& empty_folders = {});

// Throws Error (data), placed at the source, if the model takes tokens and an input of `split` is outside of its table.
void check_tokens(const Model& model, const data::Dataset& split, const Place& source);

// A warning of classes that no label is, below others that occur; else empty. `is_limited`: training takes a part
// alone.
std::string unused_classes(const Model& model, const data::Source& source, bool is_limited);

// Appends the forward pass: normalisation and layers. Returns [B, output...] with Model::dtype.
Value apply(Builder& b, const Model& model, const Forward& forward);

// The numbers (numbers.h) that the loss reads, in training and in evaluation.
std::vector<Number> loss_numbers(const Model& model);
// Converts targets [B, target...] to normalised units, and outputs from these to the units of the targets. Both return
// their operand if targets are not normalised. Computed in f64, so that a mean much larger than the standard deviation
// costs no digits; outputs stay f64 where targets are. Outputs of logarithms are inverted: finite, and at least 0.
Value normalised_targets(Builder& b, const Model& model, Value targets);
// Of log(1 + target): the largest f32 is e^88.7.
inline constexpr double largest_log_target = 88.7;
Value in_units_of_targets(Builder& b, const Model& model, Value output);
// The element type of values in units of the targets.
inline DType dtype_of_values(const Model& model) { return model.target.dtype == DType::f64 ? DType::f64 : model.dtype; }
// One value for each number of a target [B, target...], of which metrics are, from outputs in normalised units: of
// quantiles the one nearest to the median, of logarithms of rates the rates, else the outputs.
Value point_outputs(Builder& b, const Model& model, Value output);
// The loss of each example, [B] (of each position, [B, T], where labels of sequences are ignored), from outputs [B,
// output...] and targets [B, target...]. With data.normalize_targets, both are in normalised units.
Value example_losses(Builder& b, const Model& model, Value output, Value targets, const Numbers& numbers);

// The names of a metric's values: "recall", or one for each class, "recall_0".
std::vector<std::string> measure_names(const spec::Metric& metric, const Model& model);
// Plans a metric that is computed from sums (not one of row_metrics.h), for a model whose loss, target and output have
// been checked (checks.h).
PlannedMetric plan_metric(const spec::Metric& metric, const Model& model);

// The parts of all measures of a step: the loss, the parts of the metrics and, if examples have weights, "weight".
std::vector<MeasurePart> measure_parts(const Model& model);
// The measures of a step, computed from the means of the parts: "loss", then the values of the metrics.
std::vector<std::pair<std::string, double>> finish_measures(const Model& model,
                                                            std::span<const std::vector<double>> means);

// The sum of each part over the rows of this device, in the order of measure_parts, and the number of examples, a
// scalar; an example of weight 0 does not count. Sums are not normalised. `mask` is f32[B]: the weight of an example, 0
// for padding. `numbers` are those of the loss.
struct LocalSums {
  std::vector<Value> measures;
  Value count;
};
LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask, const Numbers& numbers);

}  // namespace pmaptrain::model
