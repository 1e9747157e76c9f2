// What the machine can do at most, measured: what steps and kernels are held against.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain::train {

struct Peaks {
  double gemm_flops_per_second = 0;  // products of 1024×1024 matrices
  double copy_bytes_per_second = 0;  // copies of 64 MiB; what is read and what is written both count
};

// Of all `workers` threads at once, with products of this element type; takes about half a second, and more where
// products run on reference kernels.
Peaks measure_peaks(int workers, DType products);

// The element type of the products of a step: bf16 where it has values of that.
DType products_of(const Program& program);

}  // namespace pmaptrain::train
