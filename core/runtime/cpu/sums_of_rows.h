// Sums over the rows of a batch that no axis of the mesh divides.
#pragma once

#include <memory>

#include "core/graph/program.h"

namespace pmaptrain::cpu {

// Where all devices have the same examples, no collective completes a sum over rows, such as a weight gradient. Then
// returns the program with a psum over no axes behind each sum that must be complete; one serves an array and its
// views. So plans add up the pieces' sums as they do where an axis divides the batch. Other programs are returned as
// they are.
std::shared_ptr<const Program> with_sums_of_rows(std::shared_ptr<const Program> program);

}  // namespace pmaptrain::cpu
