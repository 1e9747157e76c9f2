// Gives a module the values of a checkpoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/run/checkpoint.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Sets every input of `group` of an entry to its tensor, in one member of the module; not those of the guard, if
// `roles` tell which they are. Throws Error (data), naming `file`, if a tensor is missing or unused, or has a different
// element type or shape.
void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const run::TensorView> tensors, const std::string& file,
                 const step::StepRoles* roles = nullptr);

// Sets all values of a member in the module's training entry to those of a checkpoint. Throws Error (data).
void restore(Module& module, const Setup& setup, const run::Checkpoint& checkpoint, std::int64_t member);

}  // namespace pmaptrain::setup
