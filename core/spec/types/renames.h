// Other names for tensors: a map of patterns to names.
#pragma once

#include <string>
#include <vector>

#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

// In the order of the map.
template <>
struct Takes<std::vector<Rename>> {
  static const Type type;
  static void store(const Node& value, std::vector<Rename>& out);
};

}  // namespace pmaptrain::spec
