// How one batch lies on the devices, and the inputs that carry it into a program.
#pragma once

#include <cstdint>

#include "core/graph/builder.h"
#include "core/model/model.h"

namespace pmaptrain::model {

// What of a batch the program depends on. Microbatch k of a device is the k-th slice of its rows, so microbatches
// divides rows_per_device. Rows that hold no example are padding, with mask 0.
struct BatchShape {
  std::int64_t rows_per_device = 1;
  std::int64_t microbatches = 1;
};

// Batch inputs, each [rows, ...] varying over the data axes: "inputs" and "targets" of the data's element types,
// "mask" f32 and, in training, "rows" i64 (each example's position in the sample stream).
struct BatchInputs {
  Value inputs, targets, mask, rows;
};
BatchInputs declare_batch(Builder& b, const Model& model, AxisSet axes, std::int64_t rows, bool training);

// The evaluation step: parameters and a batch in; the parts of measures out, in the order of measure_parts, then
// "count": sums over all devices' rows (not means), the same on every device after one reduction. Batches of any size
// add up: means are the host's.
Program evaluation_program(const Model& model, const Mesh& mesh, AxisSet axes, std::int64_t rows_per_device,
                           const OpSet& ops);

}  // namespace pmaptrain::model
