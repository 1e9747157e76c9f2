// The running statistics of a model, such as the means of batch_norm: what a step replaces them by.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/model/model.h"
#include "core/step/optimizer.h"

namespace pmaptrain::step {

// A step replaces the statistics of every node, unless all parameters of the node are frozen. A node without parameters
// is not frozen. Returns the indices of these statistics in Model::parameters, ascending.
std::vector<std::size_t> replaced_statistics(const model::Model& model, const Optimizer& optimizer);

// The shapes of the sums that a device gives for these statistics: the sum of each over the examples (StatisticSum),
// then the weight of each.
std::vector<Shape> statistic_shapes(const model::Model& model, std::span<const std::size_t> statistics);

// The values that replace them: momentum · old + (1 - momentum) · sum / weight, and the old value where the weight is
// 0. `statistics` and `old` are in the order of replaced_statistics(); `sums` is the bucket of statistic_shapes() over
// all devices, or empty if there are none.
std::vector<Value> moved_statistics(Builder& b, const model::Model& model, std::span<const std::size_t> statistics,
                                    std::span<const Value> old, std::span<const Value> sums);

// bool[]: whether all elements of a bucket are finite. An overflow of a variance leaves the loss finite, so the guard
// asks this of the sums.
Value is_finite_bucket(Builder& b, Value bucket);

}  // namespace pmaptrain::step
