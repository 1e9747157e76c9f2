// Writing NumPy's formats: NPY for one array, NPZ for several by name. core/data reads them.
#pragma once

#include <cstdint>
#include <string>

#include "core/run/files/safetensors.h"

namespace pmaptrain::train {

// All that an NPY file has before its elements.
std::string npy_header(DType dtype, const Shape& shape);

// Both write the file whole or not at all, and throw Error (failed) with the system's reason. The same tensors give
// the same bytes.
void write_npy(const std::string& path, const Tensor& tensor);

// An archive of stored (not compressed) entries "NAME.npy", in the order of their names. `zip64_from`: entries and
// offsets of so many bytes use the ZIP64 extension, which they need from there on; tests pass less.
void write_npz(const std::string& path, const Tensors& tensors, std::uint64_t zip64_from = 0xFFFF'FFFF);

}  // namespace pmaptrain::train
