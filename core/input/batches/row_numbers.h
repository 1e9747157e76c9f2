// A dataset whose examples are the numbers of another one's, for programs that gather their batches from examples that
// stay in memory.
#pragma once

#include <memory>

#include "core/data/dataset.h"

namespace pmaptrain::input {

// Example i is the i32 scalar i, with the weight and the place in the source of example i of `dataset`, which has fewer
// than 2^31, and no target. Examples of `dataset` are never read.
std::shared_ptr<const data::Dataset> row_numbers_of(std::shared_ptr<const data::Dataset> dataset);

}  // namespace pmaptrain::input
