// Groups elementwise equations into chains that run in one pass over memory.
#pragma once

#include <cstdint>

#include "core/graph/program.h"

namespace pmaptrain {

// Elementwise equations over the same number of elements and the same set of axes become one `fused` equation if they
// are connected: one reads a result of another, or both read the same value. All arithmetic on scalars becomes one
// equation as well. The number of values that a chain reads is limited. Constants of one value and broadcasts that a
// chain reads are copied into it, so that they are never stored. Regions of loops are fused too. No bit of a result
// changes. The program must be simplified, so that no chain computes unused values; the result is simplified and
// checked.
Program fuse(Program program);

// Counts of visits to equations, by which tests bound the work of `fuse`.
struct FuseWork {
  std::int64_t search_visits = 0;  // in searches for dependencies between chains
  std::int64_t level_visits = 0;   // when levels of the dependency graph are raised
};
Program fuse(Program program, FuseWork& work);

}  // namespace pmaptrain
