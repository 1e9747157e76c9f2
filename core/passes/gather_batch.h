// Replaces batches that are copied by batches that are gathered from examples in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/program.h"

namespace pmaptrain {

// The batch input with the row numbers that gather_batch() uses: i32[rows].
inline constexpr std::string_view gathered_rows = "examples";

// Replaces each batch input in `names`, [rows, rest...], by a gather from a new input of the group data,
// "<split>/<name>" [examples, rest...], which takes its place among the inputs. The row numbers are the new batch input
// "examples", the last input. The inputs in `names` vary over the same axes and have the same number of rows.
Program gather_batch(Program program, std::span<const std::string_view> names, const std::string& split,
                     std::int64_t examples);

}  // namespace pmaptrain
