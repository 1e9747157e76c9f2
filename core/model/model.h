// A config's model against its data: layers with checked shapes, parameters by path, loss and metrics; and the
// equations of the forward pass.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/layers.h"

namespace pmaptrain::model {

struct Model {
  DType dtype = DType::f32;  // of parameters and of all that is computed from them
  data::Field input, target;
  std::optional<spec::Normalize> normalize;
  Place normalize_place;
  std::vector<PlannedLayer> layers;
  std::vector<Parameter> parameters;  // all layers', in order
  Shape output;                       // of one example
  spec::Loss loss = spec::Loss::softmax_cross_entropy;
  Place loss_place;
  std::vector<spec::Metric> metrics;
  Place metrics_place;

  std::int64_t parameter_count() const;  // elements
  // Names of the layers that draw random numbers, in order: each takes the hyper input "dropout/<name>".
  std::vector<std::string> drawing_layers() const;
};

// Checks the spec's layers, normalisation, loss, metrics and initial values against what the data holds. Throws Error
// with all that is wrong: exit status usage, or data where only the labels' range does not fit. `labels` is the
// smallest and largest label where the data knows it. A dtype of f64 is for checking derivatives.
Model make_model(const spec::Spec& spec, const data::Field& input, const data::Field& target,
                 std::optional<std::pair<std::int64_t, std::int64_t>> labels = std::nullopt, DType dtype = DType::f32);

// Throws Error (data) where `labels`, the smallest and largest of the split that `whose` names ("labels", "the test
// split's labels"), are not classes of the model.
void check_labels(const Model& model, const std::optional<std::pair<std::int64_t, std::int64_t>>& labels,
                  const std::string& whose = "labels");

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

// Per-example values [B] of a metric, whose sum over examples, divided by their number, is the metric.
Value example_metric(Builder& b, const Model& model, spec::Metric metric, Value output, Value targets);

// The names and order of what a step measures: "loss", then the metrics.
std::vector<std::string> measure_names(const Model& model);

// The sums over this device's rows that every measure is made from, in the order of measure_names, then the number of
// examples: scalars of the model's dtype, unnormalised. `mask` is f32[B]: 1 for an example, 0 for padding.
struct LocalSums {
  std::vector<Value> measures;
  Value count;
};
LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask);

}  // namespace pmaptrain::model
