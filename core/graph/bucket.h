// The layout of a bucket: an array of one dimension that contains other arrays, one after another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/type.h"

namespace pmaptrain {

// Each array in a bucket begins at a multiple of this many elements, and so does the end of the bucket. The elements
// that are in no array are zero.
inline constexpr std::int64_t bucket_unit = 64;

// The offset of each array in its bucket, and then the end of the last one, in elements: the size of the smallest
// bucket that contains them.
std::vector<std::int64_t> offsets_in_bucket(std::span<const Shape> shapes);
std::vector<std::int64_t> offsets_in_bucket(std::span<const Type> arrays);

}  // namespace pmaptrain
