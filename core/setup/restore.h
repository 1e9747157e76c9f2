// Gives a module the values of a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/run/checkpoint.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Gives every input of `group` of an entry its tensor, in one member of the module, but for those `left_out`. Throws
// Error (data), naming `file`, when one is missing, is left over, or has another element type or shape.
void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const TensorView> tensors, const std::string& file,
                 std::span<const std::size_t> left_out = {});

// Gives a member of the module's training entry all its values of a checkpoint. Throws Error (data).
void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint, std::int64_t member);

}  // namespace pmaptrain::train
