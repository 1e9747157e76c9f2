// Elements of parameters, read from arrays of a file.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "core/model/layout.h"
#include "core/run/files/safetensors.h"

namespace pmaptrain::setup {

// What a file has of a parameter.
struct FileArray {
  run::TensorView array;
  std::optional<run::TensorView> added = {};  // of the same shape and type, added to it
};

// Reads the elements of a parameter, as `stored` says, in `dtype`: f32 or f64. They are converted one by one on their
// way, so no other memory is taken. Returns the number of an element that is not finite in this type; none if all are.
std::optional<std::size_t> read_elements(const model::StoredParameter& stored, const FileArray& from, DType dtype,
                                         std::span<std::byte> into);
// An element of the array, as it is there.
double element_of(const model::StoredParameter& stored, const FileArray& from, std::size_t element);

}  // namespace pmaptrain::setup
