// The type of a value: element type, local shape on one logical device, and the set of mesh axes over which the value
// varies. f32[16,10]{data_shards} is a different value per data shard and the same one in every model replica.
#pragma once

#include <string>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/mesh/mesh.h"

namespace pmaptrain {

struct Type {
  DType dtype = DType::f32;
  Shape shape;
  AxisSet varying;

  friend bool operator==(const Type&, const Type&) = default;
};

inline std::int64_t numel(const Type& type) { return numel(type.shape); }
inline std::size_t bytes(const Type& type) { return size_of(type.dtype) * static_cast<std::size_t>(numel(type.shape)); }

// Why `type` is no type of a value on this mesh: a negative size, or more elements or bytes than sums of such sizes
// could count. Empty where it is one.
std::string size_error(const Type& type, const Mesh& mesh);

// "f32[16,10]{data_shards}"
std::string to_string(const Type& type, const Mesh& mesh);

}  // namespace pmaptrain
