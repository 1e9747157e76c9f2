// The axes of a mesh, and lists of their names.
#pragma once

#include "core/mesh/mesh.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<Mesh> {
  static constexpr const Type& type = Type::axes;
  static void store(const Node& value, Mesh& out);
};

}  // namespace pmaptrain::spec
