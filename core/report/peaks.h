// Measures the machine's peak rates of arithmetic and of copying. Reports show which share of them steps and kernels
// reach.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/program.h"
#include "core/runtime/backend.h"

namespace pmaptrain::report {

struct Peaks {
  double gemm_flops_per_second = 0;  // for products of square matrices
  double copy_bytes_per_second = 0;  // bytes read plus bytes written
};

// The sizes of the measurements on each worker.
struct PeakSizes {
  std::int64_t rows = 0;   // of the matrices
  std::size_t copied = 0;  // bytes
};
inline constexpr PeakSizes sizes_of_cpus{1024, std::size_t{64} << 20};
inline constexpr PeakSizes sizes_of_gpus{4096, std::size_t{128} << 20};

// The peak rates of all `workers` of the backend (threads or GPUs) together. `products` is the element type of the
// matrix products. Takes about half a second, or longer if reference kernels compute the products.
Peaks measure_peaks(const Backend& backend, int workers, DType products);

// The peak rates of GPUs, measured with programs that the backend loads.
Peaks measure_gpu_peaks(const Backend& backend, int gpus, DType products, const PeakSizes& sizes = sizes_of_gpus);

// The element type in which a step multiplies matrices: bf16 if the program has bf16 values, else f32.
DType product_dtype(const Program& program);

}  // namespace pmaptrain::report
