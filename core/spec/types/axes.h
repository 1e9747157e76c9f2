// The axes of a mesh, and lists of their names.
#pragma once

#include <string>

#include "core/mesh/mesh.h"
#include "core/spec/model.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<Mesh> {
  static constexpr const Type& type = Type::axes;
  static void store(const Node& value, Mesh& out);
};

template <>
struct Takes<AxisNames> {
  static constexpr const Type& type = Type::axis_names;
  static void store(const Node& value, AxisNames& out);
  static std::string written(const AxisNames& axes);
};

}  // namespace pmaptrain::spec
