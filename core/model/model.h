// A model, checked against the fields of its data: layers, parameters, loss and metrics; and the equations of the
// forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/field.h"
#include "core/declare/values.h"
#include "core/layers/node.h"
#include "core/losses/objective.h"
#include "core/mesh/mesh.h"
#include "core/metrics/planned.h"
#include "core/model/lora.h"

namespace pmaptrain::model {

using namespace equations;
using namespace layers;
using namespace losses;

// What a model is made of. The fields of its data are given beside it.
struct Options {
  std::vector<Layer> layers;
  Loss loss;
  std::vector<metrics::Metric> metrics;
  PrecisionPolicy precision = PrecisionPolicy::float32;
  std::optional<Lora> lora = {};
  Mesh mesh;
  AxisSet data_axes;                         // that divide the batch
  AxisSet tensor_axes = {};                  // that divide layers (parallelism.tensor)
  std::optional<FieldStatistics> normalize;  // of the inputs: a number for each channel, or one for all
  // See losses::Objective. Where the targets are labels, there are none.
  std::optional<FieldStatistics> target_statistics;
  std::vector<bool> log_targets;
  bool weighted_examples = false;
  bool lengths = false;                                   // examples are sequences of different lengths
  std::vector<double> class_weights;                      // that balance the training split
  std::map<std::string, declare::Tensor> initial_values;  // by parameter; their names and shapes are checked
  // What is known of the data beside its fields, for checks and errors.
  bool numeric_targets = false;           // integers of a file may be targets that are numbers
  std::string channels;                   // see layers::Surroundings
  std::vector<InputColumn> columns = {};  // of a table
  std::int64_t text_tokens = 0;           // how many tokens a source of texts may have; 0: another source
  Place data_place, normalize_place, loss_place, metrics_place, tensor_place;
};

struct Model : losses::Objective {
  Field input;
  bool has_lengths = false;  // whether inputs are sequences of different lengths
  // The positions of the whole sequences where this is the model of their first ones (setup::ShorterTraining), whose
  // sums over an epoch are added to those of whole ones. 0: these are whole.
  std::int64_t whole_positions = 0;
  // Of how many labels an example's weight is the sum; of numbers at padded positions, of how many positions.
  std::int64_t labels_of_example() const {
    if (whole_positions > 0) return whole_positions;
    return has_padded_numbers() ? target.shape.front() : numel(target.shape);
  }
  std::optional<FieldStatistics> normalize;
  Place normalize_place;
  std::vector<Node> layers;           // applied in order
  std::vector<Parameter> parameters;  // of all nodes; Node::first_parameter says where
  std::optional<Lora> lora;           // where layers have adapters
  std::vector<metrics::PlannedMetric> metrics;
  std::vector<metrics::Metric> row_metrics;  // row_metrics.h
  Place metrics_place;
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
  // The names of the nodes that draw random numbers; Node::key is the place. Each has a hyper input "dropout/<name>".
  std::vector<std::string> drawing_layers() const;
  // The numbers (numbers.h) that training reads: those of the layers in order, of adapters, and of the loss.
  std::vector<Number> numbers() const;

  // Defined in its source: their code is long, and each source that copies or destroys one would compile it again.
  Model();
  Model(const Model&);
  Model(Model&&) noexcept;
  Model& operator=(const Model&);
  Model& operator=(Model&&) noexcept;
  ~Model();
};

// Checks layers, normalisation, loss, metrics and initial values against the fields of the data. Throws one Error that
// lists all mistakes. Its exit status is usage, or data if the only mistake is the type of the targets in a file. dtype
// f64 is for checking derivatives.
Model make_model(const Options& options, const Field& input, const Field& target, DType dtype = DType::f32);

class Gathers;

// Appends the forward pass: normalisation and layers. Returns [B, output...] with Model::dtype. Where devices along
// Objective::output_axes divide the last layer, it returns a device's part of the classes, and losses::whole_outputs
// makes all of them. `gathers` fills in forward.parameters before layers read them; null: all are there.
Value apply(Builder& b, const Model& model, const Forward& forward, Gathers* gathers = nullptr);

// The parts of all measures of a step: the loss, the parts of the metrics and, if examples have weights, "weight".
std::vector<metrics::MeasurePart> measure_parts(const Model& model);
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
LocalSums local_sums(Builder& b, const Model& model, Value output, Value targets, Value mask, const Numbers& numbers,
                     std::optional<Value> lengths);

}  // namespace pmaptrain::model
