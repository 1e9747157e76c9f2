// The layout of a bucket: an array of one dimension that contains other arrays, one after another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/type.h"

namespace pmaptrain {

// Each array in a bucket begins at a multiple of this many elements. The elements in between are zero.
inline constexpr std::int64_t bucket_unit = 64;

// The offset of each array in its bucket, and then the size of the bucket, in elements.
std::vector<std::int64_t> offsets_in_bucket(std::span<const Shape> shapes);
std::vector<std::int64_t> offsets_in_bucket(std::span<const Type> arrays);

}  // namespace pmaptrain
