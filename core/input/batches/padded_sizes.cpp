#include "core/input/batches/padded_sizes.h"

#include <algorithm>
#include <cassert>

namespace pmaptrain::input {

std::vector<std::int64_t> padded_sizes(const data::Dataset& dataset) {
  assert(dataset.has_lengths());
  constexpr std::int64_t parts = 4, unit = 8;
  std::vector<std::int32_t> lengths(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = dataset.length(static_cast<std::int64_t>(i));
  std::sort(lengths.begin(), lengths.end());
  std::vector<std::int64_t> sizes;
  for (std::int64_t part = 1; part <= parts; ++part) {
    const std::int64_t longest = lengths[static_cast<std::size_t>((dataset.size() * part + parts - 1) / parts - 1)];
    const std::int64_t size = std::max<std::int64_t>(1, (longest + unit - 1) / unit) * unit;
    if (size < dataset.input().shape.front() && (sizes.empty() || size > sizes.back())) sizes.push_back(size);
  }
  return sizes;
}

std::int64_t longest_of(const data::Dataset& dataset, const Stream& stream, const BatchPlan& plan, std::int64_t step) {
  const std::int64_t epoch = step / plan.steps_per_epoch, k = step % plan.steps_per_epoch;
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < plan.examples_in(k); ++i) {
    longest = std::max<std::int64_t>(longest, dataset.length(stream.order().index(epoch, k * plan.global + i)));
  }
  return longest;
}

}  // namespace pmaptrain::input
