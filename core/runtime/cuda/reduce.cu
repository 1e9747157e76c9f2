#include "core/runtime/cuda/elements.cuh"
#include "core/runtime/cuda/reduce.h"

namespace pmaptrain::cuda {
namespace {

// Iterates over evenly spaced arrays in order.
class Walk {
 public:
  __device__ explicit Walk(const ArrayGrid& from) : from_(from), row_(from.begin), array_(from.begin) {}
  __device__ const std::byte* array() const { return array_; }
  __device__ void next() {
    array_ += from_.pitch;
    if (++column_ < from_.per_row) return;
    column_ = 0;
    row_ += from_.row_pitch;
    array_ = row_;
  }

 private:
  const ArrayGrid& from_;
  const std::byte *row_, *array_;
  std::int64_t column_ = 0;
};
class ScatteredWalk {
 public:
  __device__ explicit ScatteredWalk(const Scattered& from) : array_(from.begin) {}
  __device__ const std::byte* array() const { return *array_; }
  __device__ void next() { ++array_; }

 private:
  const std::byte* const* array_;
};
__device__ Walk walk(const ArrayGrid& from) { return Walk(from); }
__device__ ScatteredWalk walk(const Scattered& from) { return ScatteredWalk(from); }

// Whether the maximum or minimum of `a` and `b` is `a`. If any element is a NaN, the result is a NaN.
template <ReductionKind kind, class T>
__device__ bool keeps(T a, T b) {
  if constexpr (kind == ReductionKind::max) return a != a || a > b;
  return a != a || a < b;
}

template <ReductionKind kind, class Result>
__device__ Result reduced(Result a, Result b) {
  if constexpr (kind == ReductionKind::sum) return static_cast<Result>(a + b);
  return keeps<kind>(a, b) ? a : b;
}

template <ReductionKind kind, class T, class From>
__global__ void reduce_kernel(T* to, From from, std::int64_t elements, AdditionOrder order) {
  // Sums of integers are computed in unsigned types, so that they wrap. Maxima and minima compare signed values.
  using Sum = typename SumType<T>::type;
  using Value = std::conditional_t<std::is_same_v<T, __nv_bfloat16>, float, T>;
  using Result = std::conditional_t<kind == ReductionKind::sum, Sum, Value>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += step) {
    auto arrays = walk(from);
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
    to[i] = converted<T>(kept[0]);
  }
}

template <class From, class T>
auto kernel_of(ReductionKind kind) {
  switch (kind) {
    case ReductionKind::max: return reduce_kernel<ReductionKind::max, T, From>;
    case ReductionKind::min: return reduce_kernel<ReductionKind::min, T, From>;
    case ReductionKind::sum: break;
  }
  return reduce_kernel<ReductionKind::sum, T, From>;
}

template <class From>
cudaError_t launch(ReductionKind kind, DType dtype, std::byte* to, const From& from, std::int64_t elements,
                   const AdditionOrder& order, cudaStream_t stream) {
  if (elements == 0) return cudaSuccess;
  dispatch_elements(dtype, [&]<class T>() {
    kernel_of<From, T>(kind)<<<blocks_for(elements), block_threads, 0, stream>>>(reinterpret_cast<T*>(to), from,
                                                                                 elements, order);
  });
  return cudaGetLastError();
}

}  // namespace

cudaError_t load_reductions() {
  cudaError_t status = cudaSuccess;
  for (const ReductionKind kind : {ReductionKind::sum, ReductionKind::max, ReductionKind::min}) {
    for (const DType dtype : {DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64, DType::u32, DType::u8}) {
      dispatch_elements(dtype, [&]<class T>() {
        cudaFuncAttributes ignored{};
        if (status == cudaSuccess) status = cudaFuncGetAttributes(&ignored, kernel_of<ArrayGrid, T>(kind));
        if (status == cudaSuccess) status = cudaFuncGetAttributes(&ignored, kernel_of<Scattered, T>(kind));
      });
    }
  }
  return status;
}

cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, ArrayGrid from, std::int64_t elements,
                   const AdditionOrder& order, cudaStream_t stream) {
  return launch(kind, dtype, to, from, elements, order, stream);
}

cudaError_t reduce(ReductionKind kind, DType dtype, std::byte* to, const Scattered& from, std::int64_t elements,
                   const AdditionOrder& order, cudaStream_t stream) {
  return launch(kind, dtype, to, from, elements, order, stream);
}

}  // namespace pmaptrain::cuda
