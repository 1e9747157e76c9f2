// To how many positions the sequences of a step are padded, where sequences have lengths.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/input/batches/stream.h"
#include "core/mesh/batch_plan.h"

namespace pmaptrain::input {

// The sizes below that of the dataset's arrays, in ascending order and at most four: of each quarter of the examples by
// length, the length of the longest, rounded up to a multiple of 8 positions. They depend on the lengths alone, and so
// are those of any mesh, batch and order.
std::vector<std::int64_t> padded_sizes(const data::Dataset& dataset);

// The most positions that a sequence of the batch of a step has, over all devices. Steps count from 0.
std::int64_t longest_of(const data::Dataset& dataset, const Stream& stream, const BatchPlan& plan, std::int64_t step);

}  // namespace pmaptrain::input
