// The safetensors format: named tensors behind a JSON header. Ours and every Python library's files are the same.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/data/file.h"

namespace pmaptrain::train {

// Row-major, in the machine's (little-endian) byte order; bytes.size() is what dtype and shape say.
struct Tensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

using Tensors = std::map<std::string, Tensor>;

// Reads every tensor. Every size that the header claims is compared with the file's before memory is taken. Throws
// Error (data) for a file that is missing, truncated, damaged, or holds an element type that we have not. And the same
// from bytes, of which `path` says whose they are.
Tensors read_safetensors(const std::string& path);
Tensors parse_safetensors(data::Bytes file, const std::string& path);

// Writes the file whole or not at all. The same tensors give the same bytes. Throws Error (failed) with the system's
// reason.
void write_safetensors(const std::string& path, const Tensors& tensors);

}  // namespace pmaptrain::train
