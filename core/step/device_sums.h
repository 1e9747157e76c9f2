// What one device computes of a step: the sums over its examples, and their gradients.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/builder.h"
#include "core/model/batch.h"
#include "core/model/buckets.h"
#include "core/model/model.h"
#include "core/step/optimizer.h"
#include "core/step/options.h"

namespace pmaptrain::step {

// The values that the equations of the model read.
struct ModelValues {
  std::vector<Value> parameters;    // in the order of Model::parameters; no value for those that layers gather
  std::vector<Value> shards;        // by bucket, if layers gather them; those of the base are last
  std::vector<Value> batch;         // inputs, targets, mask, rows, and lengths if there are any
  std::vector<Value> dropout_keys;  // in the order of Model::drawing_layers
  std::vector<Value> numbers;       // of the model
};

// The sums over examples, on one device or over all devices.
struct Sums {
  std::vector<Value> gradients;  // of the unnormalised sum of losses, by trained parameter or by bucket
  std::vector<Value>
      statistics;               // of the model's statistics, in the order of statistic_shapes(); or one bucket of them
  std::vector<Value> measures;  // in the order of measure_parts
  Value count;

  // All values in the order in which loops and collectives carry them.
  std::vector<Value> flat() const;
  // Other values in the order of flat(), as sums of the same structure.
  Sums unflattened(std::span<const Value> values) const;
};

// Appends these equations.
class DeviceSums {
 public:
  // All references outlive this. `statistics` are the indices of those parameters that are statistics which a step
  // replaces. `buckets` are those of the trained parameters.
  DeviceSums(Builder& b, const model::Model& model, const StepOptions& options, const Optimizer& optimizer,
             std::span<const std::size_t> statistics, std::span<const model::Bucket> buckets);

  // The sums of a forward pass; they have no gradients.
  Sums forward(const ModelValues& values);
  // The sums over all microbatches, and the gradients. Of the tables in buckets with Bucket::tokens, `by_rows` gives
  // the gradients of the rows at the tokens of the device; there are such buckets with a single microbatch alone.
  Sums with_gradients(const ModelValues& values, std::int64_t microbatches, bool by_rows = false);
  // The same sums, with the gradients of each bucket packed (but those of tables by rows), and all statistics together.
  Sums packed(Sums sums, bool by_rows = false);

 private:
  Sums of_microbatch(const ModelValues& values, bool by_rows);
  // The sums; `read` gets the values that layers read, by parameter; `by_rows`, of tables the rows.
  Sums forward(ModelValues values, std::vector<std::vector<Value>>& read, bool by_rows = false);
  // Varying over the data axes, so that its cotangents vary too.
  Value varied_parameter(std::size_t parameter, Value value);
  // The same, of what layers gather.
  Value gathered_parameter(std::size_t parameter, Value value);
  // Refuses sums that differ between devices with the same examples: these have parts that nobody has added up.
  void check_measures(const Sums& sums) const;
  // Of the loss by the trained parameters.
  std::vector<Value> gradients(Value loss, const std::vector<std::vector<Value>>& read);
  // Sums over rows vary over the data axes, also where a collective has made what they are sums of.
  std::vector<Value> varied(std::vector<Value> values);
  // Zeros that vary over the axes of the data, or over `axes`.
  Value zero(const Shape& shape, DType dtype);
  Value zero(const Shape& shape, DType dtype, AxisSet axes);

  Builder& b_;
  const model::Model& model_;
  const StepOptions& options_;
  const std::vector<std::size_t> trained_;  // indices of parameters
  std::vector<bool> is_trained_;            // by parameter
  const std::span<const std::size_t> statistics_;
  const std::span<const model::Bucket> buckets_;
  const std::vector<model::Bucket> gathered_;  // those that layers gather: these, and those of the base
};

}  // namespace pmaptrain::step
