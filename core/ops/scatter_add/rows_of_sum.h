// A range of rows of a sum by index over all rows of a mesh, computed without an array for each addend.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/kernel/cpu.h"
#include "core/ops/scatter_add/scatter_add.h"

namespace pmaptrain::ops {

// A kernel of operands like those of `op`, whose result has the rows of the op's result from `first` on. The rows of
// the operands are those of several addends, one after another, so many of each. Each addend is summed by itself, and
// the addends are added in order: the bits are those of an array for each, of which most rows would be 0. The result
// takes memory once, and beside its zeros time for the updates alone.
std::unique_ptr<CpuKernel> make_rows_of_sum(const ScatterAdd& op, const Type& indices, const Type& result,
                                            std::int64_t first, std::span<const std::int64_t> addends);

}  // namespace pmaptrain::ops
