// What the axes of a mesh are for. It is decided once, where a config is bound.
#pragma once

#include "core/mesh/mesh.h"

namespace pmaptrain {

// Every axis has one role.
struct AxisRoles {
  AxisSet data;      // a batch is divided along these, and gradients are summed along them
  AxisSet ensemble;  // positions have members of their own, with data and axes of their own
  AxisSet tensor;    // layers are divided along these; positions see the same rows of a batch
  AxisSet pipeline;  // layers lie one after another along these; positions see the same rows
  friend bool operator==(const AxisRoles&, const AxisRoles&) = default;
};

}  // namespace pmaptrain
