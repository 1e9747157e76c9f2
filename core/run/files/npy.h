// Writes NumPy's formats: NPY for one array, NPZ for several arrays by name. core/data reads them.
#pragma once

#include <cstdint>
#include <string>

#include "core/run/files/safetensors.h"

namespace pmaptrain::run {

// Everything that precedes the elements in an NPY file.
std::string npy_header(DType dtype, const Shape& shape);

// These functions write the whole file or nothing, and throw Error (failed) with the system's reason. Equal tensors
// give equal bytes.
void write_npy(const std::string& path, const Tensor& tensor);

// Writes an archive of stored (not compressed) entries "NAME.npy", in the order of their names. Entries and offsets of
// at least `zip64_from` bytes use the ZIP64 extension. The default is where the format requires it; tests pass less.
void write_npz(const std::string& path, const Tensors& tensors, std::uint64_t zip64_from = 0xFFFF'FFFF);

}  // namespace pmaptrain::run
