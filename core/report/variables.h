// What a program keeps from step to step, as a table.
#pragma once

#include <string>

#include "core/graph/program.h"

namespace pmaptrain::report {

// A row for each input of the groups params and state, in the order of the program, with its type and bytes. Below the
// row of a bucket, a row for each part, with the index of its first element in the bucket. Bytes are those of one
// instance. `width` as in columns().
std::string variables_text(const Program& program, int width = 0);

}  // namespace pmaptrain::report
