// What the machine can do at most.
#pragma once

#include "bench/limits/team.h"

namespace pmaptrain::limits {

// f32 operations a second of matrix products of 1024x1024 through the library, one for each worker at a time.
double gemm_flops_per_second(Team& team, double seconds);

// Bytes a second of copying 64 MiB for each worker at a time; what is read and what is written both count.
double copy_bytes_per_second(Team& team, double seconds);

}  // namespace pmaptrain::limits
