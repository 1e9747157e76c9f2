// Memory of temporaries that is reused within a step: the arena of a worker's current piece, shared memory of arrays
// that are computed in chunks, and the accumulators of pieces.
#pragma once

#include <cstddef>
#include <vector>

#include "core/runtime/cpu/lifetime.h"

namespace pmaptrain::cpu {

struct Temporary {
  int root = -1;
  std::size_t offset = 0;  // in its pool
};

struct Temporaries {
  std::vector<Temporary> values;  // in the order in which they are written
  std::size_t arena_bytes = 0, shared_bytes = 0;
};

// Places the values `roots`, whose pools are arena, piece or shared. `pools` has the pool of each root; offsets in the
// shared pool begin at `shared_bytes`. An elementwise result takes the memory of an operand that is not read
// afterwards.
Temporaries place_temporaries(const Lowered& lowered, const Lifetimes& lifetimes, const std::vector<Pool>& pools,
                              const std::vector<int>& roots, std::size_t shared_bytes);

// Sets the offsets of the accumulators, and returns the bytes that they take. Large ones whose reductions are in
// different stages share memory: so the gradients of all layers are never there at once.
std::size_t place_accumulators(Lowered& lowered);

}  // namespace pmaptrain::cpu
