// The layout of a batch on the devices, and the inputs of a program for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/graph/builder.h"
#include "core/model/buckets.h"
#include "core/model/model.h"
#include "core/optimizers/options.h"

namespace pmaptrain::model {

// The sizes of a batch that a program depends on. Microbatch k of a device is the k-th slice of its rows, so
// rows_per_device is a multiple of microbatches. Rows without an example are padding, with mask 0.
struct BatchShape {
  std::int64_t rows_per_device = 1;
  std::int64_t microbatches = 1;
};

// Batch inputs, each [rows, ...] varying over the data axes: "inputs" and "targets" with the element types of the
// dataset, "mask" f32, of sequences of different lengths "lengths" i32 and, in training, "rows" i64 (the position of
// each example in the sample stream).
struct BatchInputs {
  Value inputs, targets, mask, rows;
  std::optional<Value> lengths;
};
BatchInputs declare_batch(Builder& b, const Model& model, AxisSet axes, std::int64_t rows, bool training);

// The weights that an evaluation uses.
enum class Weights {
  raw,          // the parameters
  ema,          // the moving averages of those in buckets, as state inputs "ema/<bucket>"; the others have none
  debiased_ema  // the averages divided by the hyper input "ema/correction" [] of the model's dtype: 1 - decay^updates
};
Weights weights_of(const std::optional<optimizers::Ema>& ema);

// The program of an evaluation step. Its inputs are the weights, a batch, and the numbers of the loss. Its outputs are
// the parts of the measures, in the order of measure_parts, and "count", as sums (not means) over the rows of all
// devices, replicated by one reduction. The host adds the sums of several batches, which may differ in size, and
// computes the means. If a metric needs rows, the output "rows" has gathered_rows() of each device (row_metrics.h). If
// the module has a training program too, `buckets` and `sharding` are those of that program, because the programs share
// the inputs.
Program evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops, Weights weights = Weights::raw, std::span<const Bucket> buckets = {},
                           const Sharding& sharding = {});

// The program that evaluates outputs which are computed elsewhere, such as the mean of an ensemble; where targets have
// logarithms, these are in units of the targets. Its batch inputs
// are "outputs" and, if metrics need rows, "probabilities", each f32 [rows, output...], "targets", "mask" and, where
// targets are padded numbers, "lengths". It has no weights.
Program averaged_evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                                    const OpSet& ops);

}  // namespace pmaptrain::model
