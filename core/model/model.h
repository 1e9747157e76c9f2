// A config's model against its data: layers with checked shapes, parameters by path, loss and metrics; and the
// equations of the forward pass.
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

// A part of what a metric is made from, summed over examples and divided by their number.
struct MeasurePart {
  std::string name;
  Shape shape;
  bool wide = false;  // f64: for a value that is the difference of much larger ones
};

// Which of a device's rows are examples; the others are padding.
struct Rows {
  Value count;    // bool[B]
  Value weights;  // [B] of the model's dtype: 1 for an example, 0 for padding
};

// `values` [B, ...] of examples, and 0 for padding whatever its value: 0 · ∞ would be NaN.
Value masked(Builder& b, const Rows& rows, Value values);

// A metric as sums over examples and what makes values of them: so it is the same however the examples are cut into
// batches, devices and microbatches.
struct PlannedMetric {
  std::vector<std::string> names;  // of its values
  std::vector<MeasurePart> parts;
  // The parts' sums over this device's rows.
  std::function<std::vector<Value>(Builder& b, Value output, Value targets, const Rows& rows)> sums;
  // The values, from the parts' means over all examples.
  std::function<std::vector<double>(std::span<const std::vector<double>> means)> finish;
};

struct Model {
  DType dtype = DType::f32;  // of parameters and of all that is computed from them
  data::Field input, target;
  std::optional<spec::Normalize> normalize;
  Place normalize_place;
  std::vector<PlannedLayer> layers;   // a tree: nested lists are kept
  std::vector<Parameter> parameters;  // all layers', in order
  Shape output;                       // of one example
  spec::Loss loss;
  Place loss_place;
  std::vector<PlannedMetric> metrics;
  Place metrics_place;

  std::int64_t parameter_count() const;  // elements
  // The layers that are no lists, in the order in which they are applied.
  std::vector<const PlannedLayer*> leaves() const;
  bool has_labels() const { return target.dtype == DType::i32 && target.shape.empty(); }
  // For softmax_cross_entropy, a chance for each class [C] in place of a label: one-hot rows, or softer ones.
  bool has_distributions() const {
    return is_floating(target.dtype) && target.shape.size() == 1 && target.shape.front() > 1 &&
           std::holds_alternative<spec::SoftmaxCrossEntropy>(loss);
  }
  // Labels 0 and 1 for one output, of which sigmoid_cross_entropy takes the sigmoid.
  bool is_binary() const { return has_labels() && std::holds_alternative<spec::SigmoidCrossEntropy>(loss); }
  // How many classes the labels may name, where the loss takes labels; else 0.
  std::int64_t classes() const;
  // Names of the layers that draw random numbers, in order: each takes the hyper input "dropout/<name>".
  std::vector<std::string> drawing_layers() const;
};

// Checks the spec's layers, normalisation, loss, metrics and initial values against what the data holds. Throws Error
// with all that is wrong: exit status usage, or data where only the type of a file's targets does not fit. A dtype of
// f64 is for checking derivatives.
Model make_model(const spec::Spec& spec, const data::Field& input, const data::Field& target, DType dtype = DType::f32);

// Throws Error (data), placed at the data's source in the config, where the targets of `split` are not what the model's
// loss takes: labels that are none of its classes, or numbers that are not from 0 to 1 for sigmoid_cross_entropy. Reads
// the targets until one is wrong.
void check_targets(const Model& model, const data::Dataset& split, const Place& source);

struct Forward {
  Value inputs;                       // [B, input...] of the data's element type
  std::span<const Value> parameters;  // in the order of Model::parameters
  bool training = false;
  std::span<const Value> dropout_keys = {};  // in training: u32[2] by Model::drawing_layers
  std::optional<Value> rows = {};            // in training: i64[B]
};

// Appends the forward pass: normalisation, then the layers. Returns [B, output...] of the model's dtype.
Value apply(Builder& b, const Model& model, const Forward& forward);

// Per-example losses [B] from the model's output [B, output...] and targets [B, target...].
Value example_losses(Builder& b, const Model& model, Value output, Value targets);

// `metric` of a checked model (its loss, target and output).
PlannedMetric plan_metric(const spec::Metric& metric, const Model& model);

// The parts that a step's measures are made from: the loss, then what the metrics need.
std::vector<MeasurePart> measure_parts(const Model& model);
// What a step measures, in order: "loss", then the metrics' values; from the parts' means over examples.
std::vector<std::pair<std::string, double>> finish_measures(const Model& model,
                                                            std::span<const std::vector<double>> means);

// The sums over this device's rows that every measure is made from, in the order of measure_parts, then the number of
// examples, a scalar; all of the model's dtype, unnormalised. `mask` is f32[B]: 1 for an example, 0 for padding.
struct LocalSums {
  std::vector<Value> measures;
  Value count;
};
LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask);

}  // namespace pmaptrain::model
