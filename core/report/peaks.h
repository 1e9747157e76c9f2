// Measures the peak rates of the machine, with which steps and kernels are compared.
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

// The peak rates of all `workers` of the backend together, threads or GPUs, with products of this element type. Takes
// about half a second, or longer if reference kernels compute the products.
Peaks measure_peaks(const Backend& backend, int workers, DType products);

// The peak rates of GPUs, measured with programs that the backend loads.
Peaks measure_gpus(const Backend& backend, int gpus, DType products, const PeakSizes& sizes = sizes_of_gpus);

// The element type of a step's products: bf16 if the program has bf16 values.
DType products_of(const Program& program);

}  // namespace pmaptrain::report
