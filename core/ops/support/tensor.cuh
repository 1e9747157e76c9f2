// Products of bf16 matrices on tensor cores, summed in f32, by the lanes of a warp. On the host, lanes exchange what
// they hold, so that each has the element that it would have on a GPU.
//
// The product is that of PTX's mma.m16n8k16: c[16,8] += a[16,16] b[16,8]. Lane l holds, with row = l / 4 and column =
// 2 (l % 4):
//   a: words 0 to 3 are pairs a[row, column..], a[row + 8, column..], a[row, column + 8..], a[row + 8, column + 8..];
//   b: words 0 and 1 are pairs b[column.., row] and b[column + 8.., row];
//   c: c[row, column], c[row, column + 1], c[row + 8, column], c[row + 8, column + 1].
// The lower half of a word is the first element of its pair.
#pragma once

#include "core/ops/support/warp.cuh"

namespace pmaptrain::ops::device {

// Sixteen bytes, as memory is read and written at best.
struct alignas(16) Words16 {
  u32 words[4];
};

// The first row and the first column of what this lane holds.
__device__ inline i64 lane_row() { return lane() / 4; }
__device__ inline i64 lane_column() { return lane() % 4 * 2; }

__device__ inline u32 word_at(const bf16* pair) { return *reinterpret_cast<const u32*>(pair); }

#if defined(__CUDACC__)

// Two numbers, rounded to nearest even, as a pair.
__device__ inline u32 pair_of(f32 first, f32 second) {
  u32 pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ inline void multiply_tiles(f32 (&c)[4], const u32 (&a)[4], u32 upper_b, u32 lower_b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(upper_b), "r"(lower_b));
}

// b of two products from shared memory with `stride` elements in a row, a multiple of 8: words 0 and 1 for the first
// eight columns of b, 2 and 3 for the next. The columns of b are the rows of `tile`, or with `transposed`, its columns.
template <bool transposed>
__device__ void load_columns(u32 (&b)[4], const bf16* tile, i64 stride) {
  // Eight lanes name the rows of one of the four matrices of 8 x 8.
  const i64 matrix = lane() / 8, row = lane() % 8;
  const bf16* const from = transposed ? tile + (matrix % 2 * 8 + row) * stride + matrix / 2 * 8
                                      : tile + (matrix / 2 * 8 + row) * stride + matrix % 2 * 8;
  const auto address = static_cast<u32>(__cvta_generic_to_shared(from));
  if constexpr (transposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                 : "r"(address)
                 : "memory");
  }
}

#else

__device__ inline u32 pair_of(f32 first, f32 second) {
  return static_cast<u32>(bf16(first).bits()) | static_cast<u32>(bf16(second).bits()) << 16;
}

__device__ inline f32 half_of(u32 pair, i64 second) {
  return bf16::from_bits(static_cast<std::uint16_t>(second != 0 ? pair >> 16 : pair));
}

// Sums in the order of k, which a GPU does not promise.
__device__ inline void multiply_tiles(f32 (&c)[4], const u32 (&a)[4], u32 upper_b, u32 lower_b) {
  const auto& all = PMAPTRAIN_EXCHANGE(a[0], a[1], a[2], a[3], upper_b, lower_b);
  for (i64 e = 0; e < 4; ++e) {
    const i64 row = lane_row() + e / 2 * 8, column = lane_column() + e % 2;
    for (i64 k = 0; k < 16; ++k) {
      const auto of_a = static_cast<std::size_t>(row % 8 * 4 + k % 8 / 2);
      const auto of_b = static_cast<std::size_t>(column * 4 + k % 8 / 2);
      c[e] += half_of(all[of_a][static_cast<std::size_t>(row / 8 + k / 8 * 2)], k % 2) *
              half_of(all[of_b][static_cast<std::size_t>(4 + k / 8)], k % 2);
    }
  }
}

template <bool transposed>
__device__ void load_columns(u32 (&b)[4], const bf16* tile, i64 stride) {
  for (i64 w = 0; w < 4; ++w) {
    const i64 column = lane_row() + w / 2 * 8, k = lane_column() + w % 2 * 8;
    const bf16* const first = transposed ? tile + k * stride + column : tile + column * stride + k;
    b[w] = static_cast<u32>(first->bits()) | static_cast<u32>(first[transposed ? stride : 1].bits()) << 16;
  }
}

#endif

// The largest of, or the sum over, the four lanes that hold a row.
__device__ inline f32 largest_of_row(f32 value) {
  value = larger(value, from_lane(value, 1));
  return larger(value, from_lane(value, 2));
}
__device__ inline f32 sum_of_row(f32 value) {
  value += from_lane(value, 1);
  return value + from_lane(value, 2);
}

}  // namespace pmaptrain::ops::device
