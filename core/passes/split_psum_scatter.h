// A psum_scatter of a bucket as a psum and an all_slice.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// The arrays in a bucket that a psum reads are summed where they are made, each in its own way, and the bucket of each
// device is never made (core/analysis/packed_sums.h). So a psum_scatter of a bucket that nothing else reads becomes a
// psum, with the same bits, and an all_slice.
Program split_psum_scatter(Program program);

}  // namespace pmaptrain
