// Replaces batch inputs, which the host copies to devices, by gathers from examples that stay on the devices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/graph/program.h"

namespace pmaptrain {

// The name of the batch input that gather_batch() adds: i32[rows], the number of the example in each row.
inline constexpr std::string_view row_numbers_input = "examples";

// Replaces each batch input in `names`, of shape [rows, rest...], by a gather from a new input "<split>/<name>" of the
// group data, of shape [examples, rest...]. The new input takes the place of the old one among the inputs. Which
// examples are gathered is a new batch input, `row_numbers_input`, which becomes the last input. The inputs in `names`
// must vary over the same axes and have the same number of rows.
Program gather_batch(Program program, std::span<const std::string_view> names, const std::string& split,
                     std::int64_t examples);

}  // namespace pmaptrain
