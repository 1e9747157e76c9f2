// Arrays (N, T, ...) of sequences of different lengths: how many positions of each are its own. What the others hold is
// padding.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/arrays/array.h"

namespace pmaptrain::data {

// One for each example of `inputs`, from an array (N) or (N,1) of integers. Throws Error (data) if there are more or
// fewer than examples, or one is negative or more than T.
std::vector<std::int32_t> read_lengths(const Array& lengths, const Array& inputs);
// Those of tokens (N, T): up to the last that is not `padding`. Throws Error (data) for other arrays.
std::vector<std::int32_t> lengths_before_padding(const Array& tokens, std::int64_t padding);

// The same array with zeros for padding.
Array without_padding(const Array& array, const std::vector<std::int32_t>& lengths);

}  // namespace pmaptrain::data
