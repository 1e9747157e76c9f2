// Sequences of different lengths in one array: which positions of a value are those of an example. What the others hold
// is padding, and has no effect on any value of these.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::layers {

// How many positions an example has at some place of a model, from how many it has in the data.
struct Lengths {
  // n positions become max(n + added, 0) / divisor.
  struct Change {
    std::int64_t added = 0, divisor = 1;
    friend bool operator==(const Change&, const Change&) = default;
  };
  std::vector<Change> changes;  // in the order in which they are applied

  // Behind windows of `span` positions, and behind `count` positions that are added.
  Lengths behind_windows(std::int64_t padding, std::int64_t span, std::int64_t stride) const;
  Lengths behind_added(std::int64_t count) const;
  // i32[B], from those in the data.
  Value at(Builder& b, Value in_data) const;
  friend bool operator==(const Lengths&, const Lengths&) = default;
};

// Which elements of an array [B,T,...] of this shape are at the first positions of their examples, as many as `lengths`
// says, i32[B]: bool.
Value is_inside(Builder& b, Value lengths, const Shape& shape);
// The least finite number of bfloat16, which f32 has too.
inline constexpr double below_all = -0x1.fep127;
// x [B,T,...] there, and `otherwise` at the other positions.
Value inside_or(Builder& b, Value lengths, Value x, double otherwise);
// [B,...]: the last of these positions of each example; zeros of one without any.
Value last_inside(Builder& b, Value lengths, Value x);

}  // namespace pmaptrain::layers
