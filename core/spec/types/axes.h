// The axes of a mesh, and lists of their names.
#pragma once

#include <string>

#include "core/declare/values.h"
#include "core/mesh/mesh.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<Mesh> {
  static constexpr const Type& type = Type::axes;
  static void store(const Node& value, Mesh& out);
};

template <>
struct Takes<declare::AxisNames> {
  static constexpr const Type& type = Type::axis_names;
  static void store(const Node& value, declare::AxisNames& out);
  static std::string written(const declare::AxisNames& axes);
};

}  // namespace pmaptrain::spec
