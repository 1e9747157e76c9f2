// The statistics of `normalize: auto` and of `normalize_targets: auto`.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/data/dataset.h"

namespace pmaptrain::data {

// The mean and the population standard deviation of each channel, the last dimension of the inputs, over all examples:
// in f64, with bytes as 0 to 1, and 1 in place of a standard deviation of 0. Where there are `columns`, those of
// categories have the mean 0 and the standard deviation 1. Examples are measured in chunks of a fixed size, which are
// combined in order, so the result does not depend on how many threads do it. Throws Error (data) for a NaN or an
// infinity.
Encoding::Statistics measure(const Dataset& dataset, const std::vector<Encoding::Column>& columns);

// Measures each number of the targets, which are f32. Examples are weighted if they have weights.
Encoding::Statistics measure_targets(const Dataset& dataset);

// How often each label occurs among i32 targets, which may be sequences of labels.
std::map<std::int32_t, std::int64_t> count_labels(const Dataset& dataset);

// The weights of classes 0, 1, ... that balance these labels: examples / (classes * examples of the class), as
// scikit-learn's "balanced"; 1 for a class without an example.
std::vector<double> balanced_weights(const std::map<std::int32_t, std::int64_t>& counts);

}  // namespace pmaptrain::data
