// What the machine can do at most, measured: what steps and kernels are held against.
#pragma once

namespace pmaptrain::train {

struct Peaks {
  double gemm_flops_per_second = 0;  // f32 products of 1024×1024 matrices
  double copy_bytes_per_second = 0;  // copies of 64 MiB; what is read and what is written both count
};

// Of all `workers` threads at once; takes about half a second, and more where products run on reference kernels.
Peaks measure_peaks(int workers);

}  // namespace pmaptrain::train
