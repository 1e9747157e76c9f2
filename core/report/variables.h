// What a program keeps from step to step, as a table.
#pragma once

#include <string>

#include "core/graph/program.h"

namespace pmaptrain::report {

// The inputs of the groups params and state, in the order of the program: the type and bytes of each, and of a bucket
// the parts with their first elements. Sizes are those of one instance.
std::string variables_text(const Program& program);

}  // namespace pmaptrain::report
