// The layers of a config that `init` writes, and what else arrays may mean.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/shape.h"
#include "core/data/dataset.h"

namespace pmaptrain::app {

// Lines of YAML: layers from these inputs to `outputs` numbers, or to the targets' shape where that has more than one
// dimension. `what` is a comment on the outputs.
std::string layers_for(const Shape& input, const Shape& target, std::int64_t outputs, const std::string& what);

// What the integers and whole numbers of an archive may be as well, and how to get that: "; if ..." or empty.
std::string hints_on_arrays(const data::Dataset& train, bool is_regression);

}  // namespace pmaptrain::app
