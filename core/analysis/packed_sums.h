// The buckets of a program that are made only to be summed over devices.
#pragma once

#include <cstdint>
#include <map>

#include "core/analysis/facts.h"

namespace pmaptrain {

// A `pack` whose bucket is read by a sum over devices alone (`psum`, `psum_scatter`). A backend may then add each
// packed array straight into its place in the summed bucket, without copying the arrays into a bucket first.
struct PackedSum {
  const Equation* pack = nullptr;
  const Equation* sum = nullptr;
};

// The packed sums of a program, those inside of loops excepted. A key is the id of a bucket before the sum.
std::map<std::int32_t, PackedSum> packed_sums(const Program& program, const Facts& facts);

}  // namespace pmaptrain
