// Chunks: ranges of the elements of a large array, which one worker computes at a time. Where they begin depends on the
// number of elements alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/mesh/mesh.h"

namespace pmaptrain {

// Chunks begin at multiples of this many elements.
inline constexpr std::int64_t chunk_unit = 64;
// The smallest size of a chunk, unless the array is smaller, and the largest number of chunks of an array.
inline constexpr std::int64_t least_chunk_elements = 8192;
inline constexpr std::int64_t most_chunks = 256;

// The number of chunks of an array with `elements` elements.
inline std::int64_t chunk_count(std::int64_t elements) {
  return std::clamp<std::int64_t>(elements / least_chunk_elements, 1, most_chunks);
}

// The first element of chunk `chunk`. Chunks have equal lengths; only the last ones may be shorter or empty.
inline std::int64_t chunk_begin(std::int64_t elements, std::int64_t chunk) {
  const std::int64_t step = chunk_count(elements) * chunk_unit;
  return std::min(elements, chunk * ((elements + step - 1) / step * chunk_unit));
}

// The elements of an array that rank `number` of `ranks` adds up for all of them: whole chunks.
inline IndexRange chunks_of_rank(std::int64_t elements, std::int64_t number, std::int64_t ranks) {
  const std::int64_t chunks = chunk_count(elements), first = chunk_begin(elements, number * chunks / ranks);
  return {first, chunk_begin(elements, (number + 1) * chunks / ranks) - first};
}

}  // namespace pmaptrain
