// What the machine can do at most, measured: what steps and kernels are held against.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/program.h"
#include "core/runtime/backend.h"

namespace pmaptrain::report {

struct Peaks {
  double gemm_flops_per_second = 0;  // products of square matrices
  double copy_bytes_per_second = 0;  // what is read and what is written both count
};

// What is measured on each worker.
struct PeakSizes {
  std::int64_t rows = 0;   // of the matrices
  std::size_t copied = 0;  // bytes
};
inline constexpr PeakSizes sizes_of_cpus{1024, std::size_t{64} << 20};
inline constexpr PeakSizes sizes_of_gpus{4096, std::size_t{128} << 20};

// Of all `workers` of the backend at once, threads or GPUs, with products of this element type. Takes about half a
// second, and more where products run on reference kernels.
Peaks measure_peaks(const Backend& backend, int workers, DType products);

// Of GPUs, by programs that the backend loads.
Peaks measure_gpus(const Backend& backend, int gpus, DType products, const PeakSizes& sizes = sizes_of_gpus);

// The element type of the products of a step: bf16 where it has values of that.
DType products_of(const Program& program);

}  // namespace pmaptrain::report
