// Splits a dataset into batches and a batch into the rows of devices, and fills batches.
//
// Batch k of an epoch has the examples at the positions [k * global, (k + 1) * global) of the order of the epoch. Its
// rows are these examples in order, then padding: row r belongs to device r / rows_per_device, and there to microbatch
// r % rows_per_device / (rows_per_device / microbatches). A padding row is a copy of the last example of the batch,
// including its position in the sample stream. The values computed from padding therefore also occur for an example, so
// that padding cannot be the only row that overflows. The mask gives padding zero weight.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data/dataset.h"
#include "core/input/batches/stream.h"
#include "core/mesh/batch_plan.h"
#include "core/mesh/mesh.h"
#include "core/spec/spec.h"

namespace pmaptrain::input {

// Plans the training batches. Throws Error (usage) with all errors that depend on the number of examples: batch_size:
// all that does not divide over devices and microbatches (unless remainder is mask), an epoch without a step, and a
// short last batch if remainder is error. Each error names the nearest valid sizes. Errors that the config alone shows
// have been reported before (spec/division.cpp).
BatchPlan plan_training(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples);

// The rows of a training microbatch over all devices, as plan_training() plans them; batch_size: all is `examples`.
std::int64_t rows_at_once(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples);

// Plans the batches of an evaluation: every example once, with a padded last batch. `batch` is the batch size, limited
// to `examples`. Callers pass the size of a training microbatch, so that evaluation needs no more memory than training.
// All arguments >= 1.
BatchPlan plan_evaluation(std::int64_t examples, std::int64_t batch, std::int64_t devices);

// Memory of the caller for the rows `own` of a batch, or for all plan.rows() rows if there are none; inputs and targets
// have the layout of the fields of the dataset. inputs, mask, rows and lengths are null if the program does not read
// them.
struct BatchBuffers {
  std::byte* inputs = nullptr;
  std::byte* targets = nullptr;
  float* mask = nullptr;         // the weight of an example, which is 1 in most data; 0 for padding
  std::int64_t* rows = nullptr;  // position in the sample stream, epoch * dataset + position; the row counter of
                                 // random ops
  std::size_t input_bytes = 0, target_bytes = 0;  // of one example
  IndexRange own = {};                            // see above; of a process that carries some of the devices
  std::int32_t* lengths = nullptr;                // of sequences of different lengths
};

// Fills a batch. `step` counts from 0 over all epochs. Several threads may fill different buffers at once. Throws Error
// (data) if a file of the dataset was truncated.
void fill(const data::Dataset& dataset, const Stream& stream, const BatchPlan& plan, std::int64_t step,
          const BatchBuffers& buffers);

// Fills BatchBuffers::rows alone, without reading examples.
void fill_rows(const BatchPlan& plan, std::int64_t step, const BatchBuffers& buffers);

}  // namespace pmaptrain::input
