// Batches that are gathered from examples in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/program.h"

namespace pmaptrain {

// The batch input by which gather_batch() takes examples: i32[rows].
inline constexpr std::string_view gathered_rows = "examples";

// Of each batch input in `names`, [rows, rest...], the rows are gathered by "examples" from an input of the group data,
// "<split>/<name>" [examples, rest...], which is in its place among the inputs. "examples" is the last one. All of them
// vary over the same axes and have as many rows.
Program gather_batch(Program program, std::span<const std::string_view> names, const std::string& split,
                     std::int64_t examples);

}  // namespace pmaptrain
