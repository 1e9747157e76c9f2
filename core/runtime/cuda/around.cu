#include "core/runtime/cuda/elements.cuh"
#include "core/runtime/cuda/kernels.h"

namespace pmaptrain::cuda {
namespace {

template <class T>
using Sum = typename SumType<T>::type;

template <class To, class From, class Bias>
__global__ void epilogue_kernel(To* to, const From* from, const Bias* bias, bool relu, std::int64_t elements,
                                std::int64_t columns) {
  using Value = Sum<To>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < elements; i += step) {
    Value value = converted<Value>(from[i]);
    if (bias != nullptr) value += converted<Value>(bias[i % columns]);
    if (relu && Value{0} > value) value = Value{0};
    to[i] = converted<To>(value);
  }
}

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

constexpr int tile = 32, tile_rows = 8;

template <class To, class From>
__global__ void transpose_kernel(To* to, const From* from, std::int64_t rows, std::int64_t columns) {
  // One extra element per row, so that the elements of a column are in different memory banks.
  __shared__ From values[tile][tile + 1];
  const std::int64_t tiles = (columns + tile - 1) / tile, tiles_of_matrix = (rows + tile - 1) / tile * tiles;
  const std::int64_t matrix = blockIdx.x / tiles_of_matrix, place = blockIdx.x % tiles_of_matrix;
  const std::int64_t row = place / tiles * tile, column = place % tiles * tile;
  to += matrix * rows * columns;
  from += matrix * rows * columns;
  for (int r = static_cast<int>(threadIdx.y); r < tile; r += tile_rows) {
    const std::int64_t i = row + r, k = column + threadIdx.x;
    if (i < rows && k < columns) values[r][threadIdx.x] = from[i * columns + k];
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.y); c < tile; c += tile_rows) {
    const std::int64_t i = row + threadIdx.x, k = column + c;
    if (i < rows && k < columns) to[k * rows + i] = converted<To>(values[threadIdx.x][c]);
  }
}

// A thread adds up `rows_of_part` rows of a column in the first pass. In each later pass it adds up `parts_of_sum`
// partial sums, until at most that many are left.
constexpr std::int64_t rows_of_part = 512, parts_of_sum = 64;

// Each thread sums one part of a column; neighbouring threads read neighbouring elements.
template <class From>
__global__ void sum_parts(Sum<From>* sums, const From* from, std::int64_t rows, std::int64_t columns,
                          std::int64_t rows_of_each, std::int64_t parts) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < parts * columns;
       i += step) {
    const std::int64_t first = i / columns * rows_of_each, column = i % columns;
    const std::int64_t end = first + rows_of_each < rows ? first + rows_of_each : rows;
    Sum<From> sum{};
    for (std::int64_t row = first; row < end; ++row) sum += converted<Sum<From>>(from[row * columns + column]);
    sums[i] = sum;
  }
}

template <class To, class Part>
__global__ void add_parts(To* to, const Part* sums, std::int64_t columns, std::int64_t parts) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (column >= columns) return;
  Part sum{};
  for (std::int64_t part = 0; part < parts; ++part) sum += sums[part * columns + column];
  to[column] = converted<To>(sum);
}

}  // namespace

cudaError_t apply_epilogue(const Epilogue& what, cudaStream_t stream) {
  const std::int64_t elements = what.rows * what.columns;
  if (elements == 0) return cudaSuccess;
  dispatch_floating_elements(what.to.dtype, [&]<class To>() {
    dispatch_floating_elements(what.from.dtype, [&]<class From>() {
      dispatch_floating_elements(what.bias.dtype, [&]<class Bias>() {
        epilogue_kernel<<<blocks_for(elements), block_threads, 0, stream>>>(
            reinterpret_cast<To*>(what.to.data), reinterpret_cast<const From*>(what.from.data),
            reinterpret_cast<const Bias*>(what.bias.data), what.relu, elements, what.columns);
      });
    });
  });
  return cudaGetLastError();
}

cudaError_t convert(FloatingMatrix to, FloatingMatrix from, std::int64_t elements, cudaStream_t stream) {
  return apply_epilogue({to, from, {}, false, 1, elements}, stream);
}

cudaError_t transpose(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                      cudaStream_t stream, std::int64_t matrices) {
  if (rows == 0 || columns == 0 || matrices == 0) return cudaSuccess;
  const auto tiles = static_cast<unsigned>(matrices * divided_up(rows, tile) * divided_up(columns, tile));
  dispatch_floating_elements(to.dtype, [&]<class To>() {
    dispatch_floating_elements(from.dtype, [&]<class From>() {
      transpose_kernel<<<tiles, dim3(tile, tile_rows), 0, stream>>>(
          reinterpret_cast<To*>(to.data), reinterpret_cast<const From*>(from.data), rows, columns);
    });
  });
  return cudaGetLastError();
}

std::size_t column_sums_workspace(DType from, std::int64_t rows, std::int64_t columns) {
  const std::size_t element = from == DType::f64 ? sizeof(double) : sizeof(float);
  std::int64_t parts = divided_up(rows, rows_of_part), all = parts;
  while (parts > parts_of_sum) all += parts = divided_up(parts, parts_of_sum);
  return static_cast<std::size_t>(all * columns) * element;
}

cudaError_t column_sums(FloatingMatrix to, FloatingMatrix from, std::int64_t rows, std::int64_t columns,
                        std::byte* workspace, cudaStream_t stream) {
  if (columns == 0) return cudaSuccess;
  const auto blocks = static_cast<unsigned>((columns + block_threads - 1) / block_threads);
  dispatch_floating_elements(from.dtype, [&]<class From>() {
    using Part = Sum<From>;
    auto* sums = reinterpret_cast<Part*>(workspace);
    std::int64_t parts = divided_up(rows, rows_of_part);
    if (parts > 0) {
      sum_parts<<<blocks_for(parts * columns), block_threads, 0, stream>>>(
          sums, reinterpret_cast<const From*>(from.data), rows, columns, rows_of_part, parts);
    }
    while (parts > parts_of_sum) {
      const std::int64_t fewer = divided_up(parts, parts_of_sum);
      Part* const next = sums + parts * columns;
      sum_parts<Part>
          <<<blocks_for(fewer * columns), block_threads, 0, stream>>>(next, sums, parts, columns, parts_of_sum, fewer);
      sums = next;
      parts = fewer;
    }
    dispatch_floating_elements(to.dtype, [&]<class To>() {
      add_parts<<<blocks, block_threads, 0, stream>>>(reinterpret_cast<To*>(to.data), sums, columns, parts);
    });
  });
  return cudaGetLastError();
}

}  // namespace pmaptrain::cuda
