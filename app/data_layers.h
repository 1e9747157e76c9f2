// The layers of a config that `init` writes.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/shape.h"

namespace pmaptrain::app {

// Lines of YAML: layers from these inputs to `outputs` numbers, or to the targets' shape where that has more than one
// dimension. `what` is a comment on the outputs.
std::string layers_for(const Shape& input, const Shape& target, std::int64_t outputs, const std::string& what);

}  // namespace pmaptrain::app
