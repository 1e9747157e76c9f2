// The option --mesh AXIS=N of commands that take a mesh without a config.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/mesh/mesh.h"

namespace pmaptrain::app {

// "NAME=VALUE" of an option that may repeat. Throws Error (usage) that points at an argument without both.
std::pair<std::string, std::string> split_option(const std::string& option, const std::string& argument,
                                                 const std::string& form);

// Named axes, in the order in which they are first named; the last size given for a name counts. Throws Error (usage)
// that points at the argument for an invalid axis name and for a size that is not an integer of at least 1,
// and for more than 32 axes or 65,536 devices together.
std::vector<Axis> axes_of(const std::vector<std::string>& arguments);

}  // namespace pmaptrain::app
