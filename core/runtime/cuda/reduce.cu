#include <algorithm>

#include "core/runtime/cuda/elements.cuh"
#include "core/runtime/cuda/kernels.h"

namespace pmaptrain::cuda {
namespace {

// Iterates over evenly spaced arrays in order.
class Walk {
 public:
  __device__ Walk(const std::byte* begin, const gpu::SpacedArrays& arrays)
      : arrays_(arrays), row_(begin), array_(begin) {}
  __device__ const std::byte* array() const { return array_; }
  __device__ void next() {
    array_ += arrays_.pitch;
    if (++column_ < arrays_.per_row) return;
    column_ = 0;
    row_ += arrays_.row_pitch;
    array_ = row_;
  }

 private:
  const gpu::SpacedArrays& arrays_;
  const std::byte *row_, *array_;
  std::int64_t column_ = 0;
};

// Whether the maximum or minimum of `a` and `b` is `a`. If any element is a NaN, the result is a NaN.
template <Reduction kind, class T>
__device__ bool keeps(T a, T b) {
  if constexpr (kind == Reduction::max) return a != a || a > b;
  return a != a || a < b;
}

template <Reduction kind, class Result>
__device__ Result reduced(Result a, Result b) {
  if constexpr (kind == Reduction::sum) return static_cast<Result>(a + b);
  return keeps<kind>(a, b) ? a : b;
}

struct Groups {
  gpu::Addends all[gpu::Device::most_reduced];
};
static_assert(sizeof(Groups) + sizeof(AdditionOrder) <= 4096, "the parameters of a kernel");

// A row of blocks for each group.
template <Reduction kind, class T>
__global__ void reduce_kernel(Groups groups, AdditionOrder order) {
  const gpu::Addends& group = groups.all[blockIdx.y];
  // Sums of integers are computed in unsigned types, so that they wrap. Maxima and minima compare signed values.
  using Sum = typename SumType<T>::type;
  using Value = std::conditional_t<std::is_same_v<T, __nv_bfloat16>, float, T>;
  using Result = std::conditional_t<kind == Reduction::sum, Sum, Value>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < group.elements;
       i += step) {
    Walk arrays(group.from, group.arrays);
    const auto next = [&] {
      const Result value = converted<Result>(reinterpret_cast<const T*>(arrays.array())[i]);
      arrays.next();
      return value;
    };
    Result kept[most_kept];
    int count = 0;
    for (int node = 0; node < order.nodes; ++node) {
      Result result = next();
      for (int k = 1; k < order.operands[node]; ++k) result = reduced<kind>(result, next());
      for (; count >= order.kept[node]; --count) result = reduced<kind>(kept[count - 1], result);
      kept[count++] = result;
    }
    reinterpret_cast<T*>(group.to)[i] = converted<T>(kept[0]);
  }
}

template <class T>
auto kernel_of(Reduction kind) {
  switch (kind) {
    case Reduction::max: return reduce_kernel<Reduction::max, T>;
    case Reduction::min: return reduce_kernel<Reduction::min, T>;
    case Reduction::sum: break;
  }
  return reduce_kernel<Reduction::sum, T>;
}

}  // namespace

cudaError_t load_reductions() {
  cudaError_t status = cudaSuccess;
  for (const Reduction kind : {Reduction::sum, Reduction::max, Reduction::min}) {
    for (const DType dtype : {DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u8}) {
      dispatch_elements(dtype, [&]<class T>() {
        cudaFuncAttributes ignored{};
        if (status == cudaSuccess) status = cudaFuncGetAttributes(&ignored, kernel_of<T>(kind));
      });
    }
  }
  return status;
}

cudaError_t reduce(Reduction kind, DType dtype, std::span<const gpu::Addends> all, const AdditionOrder& order,
                   cudaStream_t stream) {
  Groups groups{};
  std::int64_t most = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    groups.all[i] = all[i];
    most = std::max(most, all[i].elements);
  }
  if (most == 0) return cudaSuccess;
  const dim3 blocks(blocks_for(most), static_cast<unsigned>(all.size()));
  dispatch_elements(dtype, [&]<class T>() { kernel_of<T>(kind)<<<blocks, block_threads, 0, stream>>>(groups, order); });
  return cudaGetLastError();
}

}  // namespace pmaptrain::cuda
