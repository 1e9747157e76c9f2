// Programs of divided arrays, and what every backend does with them.
#pragma once

#include <cstdint>

#include "core/runtime/backend.h"

namespace pmaptrain::test {

// Its step adds 1 to each array. `members` members of an ensemble have them.
Source divided_arrays(bool private_copies, std::int64_t members = 1);
// Writes, runs, reads and clears the arrays, whole and in ranges. Throws where a value is wrong.
void check_divided_arrays(Module& module);

// Of two arrays with random layouts, and a bucket of three more that is whole, or in shards along one axis or two.
Source random_arrays(std::uint32_t seed, bool private_copies, std::int64_t members = 1);
// Writes the arrays of all members, whole and in ranges, and reads them so, and the local array of each device. Throws
// where an element is not where a plain computation finds it.
void check_random_arrays(Module& module, std::uint32_t seed);

}  // namespace pmaptrain::test
