// Products of small f32 matrices, whose sums are kept in registers, for code that is compiled once for each instruction
// set. Include this after hwy/highway.h.
#if defined(PMAPTRAIN_CORE_KERNEL_VECTOR_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef PMAPTRAIN_CORE_KERNEL_VECTOR_TILES_INL_H
#undef PMAPTRAIN_CORE_KERNEL_VECTOR_TILES_INL_H
#else
#define PMAPTRAIN_CORE_KERNEL_VECTOR_TILES_INL_H
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Columns are computed in groups of 16, the lanes of the widest vectors, and rows in groups of 8.
constexpr std::size_t columns_together = 16, rows_together = 8;
using Floats = hn::CappedTag<float, columns_together>;
using Vector = hn::Vec<Floats>;
constexpr std::size_t lanes = hn::MaxLanes(Floats());

constexpr std::size_t up_to(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// A matrix that need not be stored by rows: distances from a row, and from a column, to the next.
struct Left {
  const float* at;
  std::size_t row, column;
};

// c = a b, or c + a b, for `rows` rows and `vectors` vectors of columns, whose sums are kept in registers: in loops
// that GCC does not unroll, they would pass through memory.
template <std::size_t rows, std::size_t vectors, bool add>
HWY_INLINE void multiply_tile(std::size_t depth, Left a, const float* b, std::size_t b_row, float* c,
                              std::size_t c_row) {
  const Floats d;
  Vector sum[rows][vectors];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = add ? hn::LoadU(d, c + r * c_row + v * lanes) : hn::Zero(d);
  }
  for (std::size_t p = 0; p < depth; ++p) {
    Vector x[vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) x[v] = hn::LoadU(d, b + p * b_row + v * lanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < rows; ++r) {
      const Vector factor = hn::Set(d, a.at[r * a.row + p * a.column]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(factor, x[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < rows; ++r) {
#pragma GCC unroll 8
    for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sum[r][v], d, c + r * c_row + v * lanes);
  }
}

// It is a separate function so that its loops have all registers.
template <std::size_t vectors>
HWY_NOINLINE void multiply_columns(std::size_t m, std::size_t depth, Left a, const float* b, std::size_t b_row,
                                   float* c, std::size_t c_row, bool add) {
  constexpr std::size_t rows = lanes == 16 ? 8 : 4;  // AVX-512 has twice as many registers
  for (std::size_t i = 0; i < m; i += rows) {
    const Left from{a.at + i * a.row, a.row, a.column};
    if (add) {
      multiply_tile<rows, vectors, true>(depth, from, b, b_row, c + i * c_row, c_row);
    } else {
      multiply_tile<rows, vectors, false>(depth, from, b, b_row, c + i * c_row, c_row);
    }
  }
}

// c [m,n] = a [m,depth] b [depth,n], or c + a b: m is a multiple of rows_together and n one of columns_together. Each
// element is summed in the order of `depth`.
inline void multiply_block(std::size_t m, std::size_t n, std::size_t depth, Left a, const float* b, std::size_t b_row,
                           float* c, std::size_t c_row, bool add) {
  std::size_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) multiply_columns<2>(m, depth, a, b + j, b_row, c + j, c_row, add);
  for (; j < n; j += lanes) multiply_columns<1>(m, depth, a, b + j, b_row, c + j, c_row, add);
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#endif
