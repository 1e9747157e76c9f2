// The statistics of `normalize: auto` and of `normalize_targets: auto`.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "core/data/dataset.h"

namespace pmaptrain::data {

// What brings an output's targets near 0 and 1: the mean and the standard deviation of the training split; `log`: those
// of log(1 + target).
enum class TargetScale { none, automatic, log };

// The mean and the population standard deviation of each channel, the last dimension of the inputs, over all examples:
// in f64, with bytes as 0 to 1, and 1 in place of a standard deviation of 0. With `exact`, numbers are those that the
// files have; else as read() gives them. Where there are `columns`, those of categories have the mean 0 and the
// standard deviation 1. Examples are measured in chunks of a fixed size, which are combined in order, so the result
// does not depend on how many threads do it. Throws Error (data) for a NaN or an infinity.
struct Measurement {
  Encoding::Statistics statistics;
  bool needs_exact = false;  // see needs_exact_inputs()
};
Measurement measure(const Dataset& dataset, const std::vector<Encoding::Column>& columns, bool exact = true);

// Measures each number of the targets; of numbers of positions, those of all real positions together (subset.h,
// numbers_of_target). Examples are weighted if they have weights. `scales`, one for each number: of
// log(1 + target), or 0 and 1 for numbers that stay as they are.
Encoding::Statistics measure_targets(const Dataset& dataset, const std::vector<TargetScale>& scales, bool exact = true);

// Whether f32 holds too little of the numbers that a file has for standard deviations like these: an integer is another
// one in f32, or a number moves by more than 1e-5 standard deviations.
bool needs_exact_inputs(const Dataset& dataset, const std::vector<double>& deviations);
// Logarithms keep the digits that f32 has of a target.
bool needs_exact_targets(const Dataset& dataset, const std::vector<TargetScale>& scales,
                         const Encoding::Statistics& statistics);

// A channel, or a number of a target, whose different numbers are fewer in f32.
struct Collapsed {
  std::size_t channel = 0;
  std::size_t numbers = 0, in_float = 0;
};
// Those channels whose integers collapse, or more than 1 % of their other numbers, and that f32 rounds by more than
// 1e-5 of their range.
std::vector<Collapsed> collapsed_inputs(const Dataset& dataset);
std::vector<Collapsed> collapsed_targets(const Dataset& dataset);

// How often each label occurs among i32 targets, which may be sequences of labels.
std::map<std::int32_t, std::int64_t> count_labels(const Dataset& dataset);

// The weights of classes 0, 1, ... that balance these labels: examples / (classes * examples of the class), as
// scikit-learn's "balanced"; 1 for a class without an example.
std::vector<double> balanced_weights(const std::map<std::int32_t, std::int64_t>& counts);

// Of targets [L] of 0 and 1, or one label of 0 and 1: negatives / positives of each; 1 where all or none are positive.
std::vector<double> balanced_positives(const Dataset& dataset);

}  // namespace pmaptrain::data
