// The safetensors format: named tensors after a JSON header. The files are compatible with those of the Python library.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/data/file.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {

// Row-major, in the machine's (little-endian) byte order. The size of `bytes` follows from dtype and shape.
struct Tensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

using Tensors = std::map<std::string, Tensor>;

// A tensor that does not own its elements: they are in a file or in memory.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
  bool is_half = false;  // of a file that may have them: the elements are f16 (core/base/half.h), to be read as f32
};

// The tensors of a file, in the order of their data, as views of the file's bytes. Every size in the header is compared
// with the size of the file before it is used. Throws Error (data) for a file that is truncated, damaged, or has an
// unsupported element type; `path` is shown in messages. Call file.check_intact() after reading the elements.
std::vector<TensorView> view_safetensors(const data::Bytes& file, const std::string& path);
// The same of a file that may have elements of f16.
std::vector<TensorView> view_safetensors_with_halves(const data::Bytes& file, const std::string& path);

// Copies of all tensors of a file. Throws Error (data), also if the file does not exist.
Tensors read_safetensors(const std::string& path);
Tensors parse_safetensors(const data::Bytes& file, const std::string& path);

// Writes the tensors without copying their elements. Equal tensors give equal bytes. Throws what the sink throws.
void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors);
// Writes tensors whose elements are not in memory: `write_elements` writes the elements of a tensor to the sink.
// `metadata` is stored in the header; readers may ignore it.
void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors,
                       const std::function<void(const TensorView& tensor)>& write_elements,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace pmaptrain::run
