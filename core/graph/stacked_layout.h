// The layout of a batch input or an output, which its type says.
#pragma once

#include "core/graph/type.h"
#include "core/mesh/layout.h"

namespace pmaptrain {

// The arrays of all positions along the axes over which a value varies, behind a dimension for each of these axes, as
// pmap takes and returns them. So the rows of a batch follow one another.
inline Layout stacked_layout(const Type& type, const Mesh& mesh) {
  Layout layout;
  for (const int axis : type.varying.list()) {
    layout.logical.push_back(mesh.size(axis));
    layout.divided.push_back({axis});
  }
  layout.logical.insert(layout.logical.end(), type.shape.begin(), type.shape.end());
  return layout;
}

}  // namespace pmaptrain
