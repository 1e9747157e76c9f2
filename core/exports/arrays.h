// Tensors of a checkpoint, and the arrays of a file in which a layout has several parameters.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/model/layout.h"
#include "core/run/files/safetensors.h"

namespace pmaptrain::exports {

// The elements of a parameter in the tensors of `file`, by name. Throws Error (data) if they lack it, as f32 of its
// shape.
std::span<const std::byte> tensor_of(const std::map<std::string, run::TensorView>& tensors,
                                     const model::Parameter& parameter, const std::string& file);

// Writes a parameter, f32, to its range of the array `stored.name`, which is made with the first of its ranges. What no
// parameter writes stays zero. Throws Error (usage) if the array would have another size for this one: the ranges of an
// array are equal. `parameter` is its name, for messages.
void write_to_array(run::Tensors& arrays, const model::StoredParameter& stored, std::span<const std::byte> elements,
                    const std::string& parameter);

}  // namespace pmaptrain::exports
