// A program of divided arrays, and what every backend does with them.
#pragma once

#include <cstdint>

#include "core/runtime/backend.h"

namespace pmaptrain::test {

// Its step adds 1 to each array. `members` members of an ensemble have them.
Source divided_arrays(bool private_copies, std::int64_t members = 1);
// Writes, runs, reads and clears the arrays, whole and in ranges. Throws where a value is wrong.
void check_divided_arrays(Module& module);

}  // namespace pmaptrain::test
