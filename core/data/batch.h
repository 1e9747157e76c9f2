// How a dataset is cut into batches, a batch into devices' rows, and how one is filled.
//
// Batch k of an epoch covers the positions [k * global, (k + 1) * global) of the epoch's order. Its rows are those
// examples in order, then padding: row r belongs to device r / rows_per_device, and to microbatch
// r % rows_per_device / (rows_per_device / microbatches) of it. Only the last rows are padding. Each repeats the
// batch's last example, its number in the sample stream included: whatever the model computes of padding, it also
// computes of an example, so padding is never the only row that overflows. The mask says which rows count.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/data/dataset.h"
#include "core/data/sampler.h"
#include "core/mesh/mesh.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

struct BatchPlan {
  std::int64_t dataset = 0;  // examples there are
  std::int64_t global = 0;   // examples of a whole batch
  std::int64_t devices = 1;
  std::int64_t rows_per_device = 0;  // with padding; a multiple of microbatches
  std::int64_t microbatches = 1;
  std::int64_t steps_per_epoch = 0;
  std::int64_t examples_per_epoch = 0;  // that count
  std::int64_t skipped_per_epoch = 0;   // examples that no batch has
  std::int64_t padded_per_epoch = 0;    // rows without an example

  std::int64_t rows() const { return devices * rows_per_device; }
  std::int64_t rows_at_once() const { return rows() / microbatches; }
  // Examples in batch `step` of an epoch (0 <= step < steps_per_epoch): fewer than `global` in a short last one.
  std::int64_t examples_in(std::int64_t step) const;
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

// The training batches. Throws Error (exit status usage) with every mistake that only the number of examples
// shows, at its place: a batch of all that does not divide over devices and microbatches (unless remainder is mask), an
// epoch without a step, and, where remainder is error, examples that do not fill the last batch; each names the nearest
// sizes that would do. What the config says by itself is checked before (spec/division.cpp).
BatchPlan plan_training(const spec::DataSpec& spec, const Mesh& mesh, std::int64_t examples);

// Batches for evaluation: every example once, padded and masked. `batch` is the size to aim for, of which at most
// `examples` is used: a microbatch of training, so that microbatches bound the memory of both. All arguments >= 1.
BatchPlan plan_evaluation(std::int64_t examples, std::int64_t batch, std::int64_t devices);

// Memory for plan.rows() rows, which the caller owns: inputs and targets as the dataset's fields say, row after row. A
// program that reads no mask or no rows has none: they are null.
struct BatchBuffers {
  std::byte* inputs = nullptr;
  std::byte* targets = nullptr;
  float* mask = nullptr;         // 1 for an example, 0 for padding
  std::int64_t* rows = nullptr;  // the example's position in the sample stream, epoch * dataset + position: dropout's
                                 // row counter
  std::size_t input_bytes = 0, target_bytes = 0;  // of one example, as the dataset's fields have them
};

// Fills a batch; steps count from 0 over all epochs. Several threads may fill different buffers at once. Throws Error
// (data) when a file of the dataset was cut short.
void fill(const Dataset& dataset, const Sampler& sampler, const BatchPlan& plan, std::int64_t step,
          const BatchBuffers& buffers);

// The rows of a batch alone, without reading examples.
void fill_rows(const BatchPlan& plan, std::int64_t step, std::int64_t* rows);

}  // namespace pmaptrain::data
