// The safetensors format: named tensors behind a JSON header. Ours and every Python library's files are the same.
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

namespace pmaptrain::train {

// Row-major, in the machine's (little-endian) byte order; bytes.size() is what dtype and shape say.
struct Tensor {
  DType dtype = DType::f32;
  Shape shape;
  std::vector<std::byte> bytes;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

using Tensors = std::map<std::string, Tensor>;

// A tensor whose elements lie elsewhere: in a file, or in memory.
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// The tensors of a file, in the order of their data; their elements are the file's own. Every size that the header
// claims is compared with the file's before it is used. Throws Error (data) for a file that is truncated, damaged, or
// holds an unsupported element type; `path` is the file's path, for messages. After reading the elements, call
// file.check_intact().
std::vector<TensorView> view_safetensors(const data::Bytes& file, const std::string& path);

// Copies of every tensor. Throws Error (data) also for a file that is missing.
Tensors read_safetensors(const std::string& path);
Tensors parse_safetensors(const data::Bytes& file, const std::string& path);

// Writes the tensors, element by element as they are: nothing but the header is copied. The same tensors give the same
// bytes. Throws what the sink throws.
void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors);
// The same for tensors whose elements are not in memory: `write_elements` gives a tensor's to the sink. `metadata` is
// what the header says beside the tensors; readers may pass it over.
void write_safetensors(ByteSink& sink, std::span<const TensorView> tensors,
                       const std::function<void(const TensorView& tensor)>& write_elements,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace pmaptrain::train
