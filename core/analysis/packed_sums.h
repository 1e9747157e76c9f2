// The buckets of a program that are made only to be summed over devices.
#pragma once

#include <cstdint>
#include <map>

#include "core/analysis/facts.h"

namespace pmaptrain {

// A `pack` whose result only a sum over devices reads. A backend may add its arrays one by one, so that they are never
// copied together.
struct PackedSum {
  const Equation* pack = nullptr;
  Value sum;  // the result of the sum
};

// By the number of the value that the `pack` gives. Loops are not searched.
std::map<std::int32_t, PackedSum> packed_sums(const Program& program, const Facts& facts);

}  // namespace pmaptrain
