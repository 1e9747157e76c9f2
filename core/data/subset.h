// A part of the examples of a dataset, in the order of that dataset.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/data/dataset.h"

namespace pmaptrain::data {

// 0 < count <= dataset->size() in all of them; the parts keep the dataset.
std::shared_ptr<const Dataset> first_examples(const std::shared_ptr<const Dataset>& dataset, std::int64_t count);

// The same dataset, with f64 in place of f32 inputs or targets: the numbers that its files have.
std::shared_ptr<const Dataset> exact_numbers(std::shared_ptr<const Dataset> dataset, bool inputs, bool targets);

// The same dataset of sequences, whose example i has lengths[i] positions of its own. The others are zeros there;
// labels at them become `ignored`.
std::shared_ptr<const Dataset> with_lengths(const std::shared_ptr<const Dataset>& dataset,
                                            std::vector<std::int32_t> lengths, std::int64_t ignored);

// Whether targets are numbers of the positions of sequences of different lengths, [T] or [T, ...].
bool has_numbers_of_positions(const Dataset& dataset);
// How many numbers a target has; of positions, how many each has.
std::int64_t numbers_of_target(const Dataset& dataset);

// The same dataset of sequences, cut to their first `count` positions, and their targets with them if these are
// `by_position`. Only examples with at most so many positions may be read.
std::shared_ptr<const Dataset> first_positions(const std::shared_ptr<const Dataset>& dataset, std::int64_t count,
                                               bool by_position);

struct Division {
  std::shared_ptr<const Dataset> taken, rest;  // of `count` examples, and of the others: count < size
};
// Takes examples by a permutation from the stream "data/validation" of `seed`.
Division divide_shuffled(const std::shared_ptr<const Dataset>& dataset, std::int64_t count, std::uint64_t seed);
// Takes `counts[label]` examples of each class, the first ones in that permutation. `labels` has the label of each
// example.
Division divide_by_class(const std::shared_ptr<const Dataset>& dataset, std::map<std::int32_t, std::int64_t> counts,
                         const std::vector<std::int32_t>& labels, std::uint64_t seed);
// Which groups to take for a share of `count` examples: in a permutation from that stream, those that still fit; where
// none does, the smallest. `groups` has the group of each example, of at least two groups, numbered from 0.
std::vector<bool> choose_groups(const std::vector<std::uint32_t>& groups, std::int64_t count, std::uint64_t seed);
// Takes the examples of the groups that are `chosen`: some of them, and not all.
Division divide_by_group(const std::shared_ptr<const Dataset>& dataset, const std::vector<std::uint32_t>& groups,
                         const std::vector<bool>& chosen);
// Takes the last examples.
Division divide_in_order(const std::shared_ptr<const Dataset>& dataset, std::int64_t count);

}  // namespace pmaptrain::data
