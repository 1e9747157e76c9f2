// The running statistics of a model, such as the means of batch_norm: what a step replaces them by.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/step/optimizer.h"

namespace pmaptrain::train {

// A step replaces the statistics of every node, unless all parameters of the node are frozen. A node without parameters
// is not frozen. Returns the indices of these statistics in Model::parameters, ascending.
std::vector<std::size_t> replaced_statistics(const model::Model& model, const Optimizer& optimizer);

// The values that replace them: momentum · old + (1 - momentum) · sum / count. `statistics` and `old` are in the order
// of replaced_statistics(); `sums` is the bucket of their sums over all examples, or empty if there are none.
std::vector<Value> moved_statistics(Builder& b, const model::Model& model, std::span<const std::size_t> statistics,
                                    std::span<const Value> old, std::span<const Value> sums, Value count);

// bool[]: whether all elements of a bucket are finite. An overflow of a variance leaves the loss finite, so the guard
// asks this of the sums.
Value is_finite_bucket(Builder& b, Value bucket);

}  // namespace pmaptrain::train
