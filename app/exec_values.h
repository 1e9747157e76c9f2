// Values of `exec` as people, JSON readers and NumPy see them.
//
// A value that varies over axes has, as an array, one leading dimension for each of them in mesh order, as `pmap`
// would (stacked_layout): f32[4]{devices} on 8 devices is an array of shape (8, 4).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/stacked_layout.h"
#include "core/run/files/safetensors.h"

namespace pmaptrain::app {

// A value's local bytes on one device.
using OnDevice = std::function<std::vector<std::byte>(std::int64_t device)>;

// "(8, 4)", "(8,)", "()"
std::string tuple_text(const Shape& shape);
// "float32": NumPy's name, or that of ml_dtypes.
std::string numpy_name(DType dtype);
// "np.float32", "ml_dtypes.bfloat16"
std::string numpy_expression(DType dtype);

run::Tensor to_array(const Type& type, const Mesh& mesh, const OnDevice& value);

// Reads an NPY file as the value of `input`. Throws Error (data) where its element type or shape is not the input's.
run::Tensor read_array(const std::string& path, const std::string& input, const Type& type, const Mesh& mesh);

// Devices that hold the same bits, in the order of their first.
struct Holders {
  std::vector<std::int64_t> devices;
  std::vector<std::byte> value;
};
std::vector<Holders> distinct(const Mesh& mesh, const OnDevice& value);

// "mesh: devices=8 (8 logical devices)", with its end of line.
std::string mesh_line(const Mesh& mesh);

// "all 8 devices", "device 3", "devices 0-3, 8", with the coordinates that they share: "(data_shards 1)".
std::string holders_text(const std::vector<std::int64_t>& devices, const Mesh& mesh);

// "[[1.0, 2.0], [3.0, 4.0]]"; long dimensions are abbreviated.
std::string array_text(DType dtype, const Shape& shape, std::span<const std::byte> value);

}  // namespace pmaptrain::app
