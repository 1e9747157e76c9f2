// This file is compiled once for each instruction set. At run time, the best version for the CPU is chosen.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/kernel/vector_product.h"

#include <algorithm>
#include <cassert>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/kernel/vector_product.cpp"
// foreach_target.h must come first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

// Whether the target has an instruction that selects elements from two vectors.
#undef PMAPTRAIN_HAS_MERGE
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
#define PMAPTRAIN_HAS_MERGE 1
#else
#define PMAPTRAIN_HAS_MERGE 0
#endif

HWY_BEFORE_NAMESPACE();
namespace pmaptrain {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Places = hn::ScalableTag<std::int32_t>;
constexpr std::size_t most_lanes = hn::MaxLanes(Floats());

// Whether columns() transposes rows of this width. If the width and the number of lanes have no common divisor, the
// elements of a column of `lanes` rows lie at different positions of their vectors.
constexpr bool has_turns(std::size_t width) { return width > 1 && width % 2 == 1 && most_lanes > 1; }

// The number of binary digits of a number below `width`.
constexpr std::size_t digits_below(std::size_t width) {
  std::size_t digits = 0;
  while ((std::size_t{1} << digits) < width) ++digits;
  return digits;
}

// Fills the table for columns(): for each binary digit, whether position p of a vector has this digit in -p mod width;
// then, for each column, the position of each row's element.
void fill_turns(std::size_t width, std::vector<std::int32_t>& table) {
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t digit = 0; digit < digits_below(width); ++digit) {
    for (std::size_t p = 0; p < lanes; ++p) {
      table.push_back(static_cast<std::int32_t>((width - p % width) % width >> digit & 1));
    }
  }
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      table.push_back(static_cast<std::int32_t>((lane * width + f) % lanes));
    }
  }
}

// Fills the table for columns(), or else for column(). A group of as many rows as a vector has lanes is loaded as
// `width` vectors. Element f of row `lane` is then in vector (lane * width + f) / lanes. With merge instructions, the
// table has the indices, for each f, to merge vector 1 into vector 0, vector 2 into the result, and so on; indices from
// `lanes` on select from the vector that is merged. Otherwise, the table has the offsets of a gather.
void fill_transposition(std::size_t width, std::vector<std::int32_t>& table) {
  if (has_turns(width)) return fill_turns(width, table);
  const std::size_t lanes = hn::Lanes(Floats());
#if PMAPTRAIN_HAS_MERGE
  for (std::size_t f = 0; f < width; ++f) {
    for (std::size_t v = 1; v < width; ++v) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t element = lane * width + f;
        const std::size_t kept = v == 1 ? element % lanes : lane;
        table.push_back(static_cast<std::int32_t>(element / lanes == v ? lanes + element % lanes : kept));
      }
    }
  }
#else
  for (std::size_t lane = 0; lane < lanes; ++lane) table.push_back(static_cast<std::int32_t>(lane * width));
#endif
}

void fill_row_of_element(std::size_t width, std::vector<std::int32_t>& table) {
  for (std::size_t i = 0; i < width * hn::Lanes(Floats()); ++i) table.push_back(static_cast<std::int32_t>(i / width));
}

// Element f of each row in a group of rows with `width` elements. If `width` is a compile-time constant, the compiler
// keeps the table's vectors in registers.
template <class Width, class Table>
HWY_INLINE hn::Vec<Floats> column(const float* rows, std::size_t f, [[maybe_unused]] Width width, const Table& table) {
  const Floats d;
#if PMAPTRAIN_HAS_MERGE
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Floats> column = hn::LoadU(d, rows);
  for (std::size_t v = 1; v < width; ++v) {
    const auto places = table(f * (width - 1) + v - 1);
    column.raw = _mm512_permutex2var_ps(column.raw, places.raw, hn::LoadU(d, rows + v * lanes).raw);
  }
  return column;
#else
  return hn::GatherIndex(d, rows + f, table(0));
#endif
}

// Replaces vector f by vector (f + 2^digit) mod width at the positions that have the digit, and likewise for the digits
// after it.
template <std::size_t width, std::size_t digit, class Has>
HWY_INLINE void turn(const Has* has, hn::Vec<Floats>* vectors) {
  if constexpr (digit < digits_below(width)) {
    hn::Vec<Floats> turned[width];
    for (std::size_t f = 0; f < width; ++f) {
      turned[f] = hn::IfThenElse(has[digit], vectors[(f + (std::size_t{1} << digit)) % width], vectors[f]);
    }
    turn<width, digit + 1>(has, turned);
    for (std::size_t f = 0; f < width; ++f) vectors[f] = turned[f];
  }
}

// The columns of a group of rows, for has_turns(width), up to the order of their elements. The vectors are numbered so
// that vector f has an element of column f at position 0, and so one of column (f + p) mod width at position p. The
// element of column f at position p is then in vector (f - p) mod width. Vectors are exchanged digit by digit, as in a
// barrel shifter, which takes width * log2(width) selections instead of width^2.
template <std::size_t width, class Has>
HWY_INLINE void columns(const float* rows, const Has* has, hn::Vec<Floats>* vectors) {
  const std::size_t lanes = hn::Lanes(Floats());
  for (std::size_t v = 0; v < width; ++v) vectors[v * lanes % width] = hn::LoadU(Floats(), rows + v * lanes);
  turn<width, 0>(has, vectors);
}

// Copies the last rows of a matrix, and appends zeros up to a full group of rows.
void pad(std::size_t elements, std::size_t width, const float* x, float* padded) {
  std::fill(std::copy_n(x, elements, padded), padded + most_lanes * width, 0.0F);
}

// Stores product(rows), an array of vectors, for each `groups` groups of rows. `product` is always inlined, so that
// what it captures stays in registers.
template <std::size_t groups, class Product>
HWY_INLINE void for_each_group(std::size_t width, std::size_t rows, const float* x, float* y, const Product& product) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d), step = groups * lanes;
  hn::Vec<Floats> sums[groups];
  std::size_t r = 0;
  for (; r + step <= rows; r += step) {
    product(x + r * width, sums);
    for (std::size_t g = 0; g < groups; ++g) hn::StoreU(sums[g], d, y + r + g * lanes);
  }
  if (r == rows) return;
  HWY_ALIGN float last[groups * NarrowRows::widest * most_lanes];
  HWY_ALIGN float products[groups * most_lanes];
  std::fill(std::copy_n(x + r * width, (rows - r) * width, last), last + step * width, 0.0F);
  product(last, sums);
  for (std::size_t g = 0; g < groups; ++g) hn::Store(sums[g], d, products + g * lanes);
  std::copy_n(products, rows - r, y + r);
}

HWY_INLINE hn::Vec<Floats> offset_of(const float* bias) {
  return hn::Set(Floats(), bias == nullptr ? -0.0F : *bias);  // adding -0 does not change y
}

// Two groups at a time, because the additions of a group wait for each other.
template <std::size_t width>
void times_turned(std::size_t rows, const std::int32_t* table, const float* x, const float* w, const float* bias,
                  float* y) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Mask<Floats> has[digits_below(width)];
  for (std::size_t digit = 0; digit < digits_below(width); ++digit) {
    has[digit] = hn::RebindMask(d, hn::Ne(hn::LoadU(Places(), table + digit * lanes), hn::Zero(Places())));
  }
  const std::int32_t* const places = table + digits_below(width) * lanes;
  constexpr std::size_t groups = width < 8 ? 2 : 1;
  const hn::Vec<Floats> offset = offset_of(bias);
  for_each_group<groups>(
      width, rows, x, y, [&](const float* from, hn::Vec<Floats>* sums) HWY_ATTR __attribute__((always_inline)) {
        hn::Vec<Floats> vectors[groups][width];
        for (std::size_t g = 0; g < groups; ++g) {
          columns<width>(from + g * width * lanes, has, vectors[g]);
          sums[g] = hn::Zero(d);
        }
        for (std::size_t f = 0; f < width; ++f) {
          const auto place = hn::SetTableIndices(d, places + f * lanes);
          const hn::Vec<Floats> factor = hn::Set(d, w[f]);
          for (std::size_t g = 0; g < groups; ++g) {
            sums[g] = hn::Add(sums[g], hn::Mul(hn::TableLookupLanes(vectors[g][f], place), factor));
          }
        }
        for (std::size_t g = 0; g < groups; ++g) sums[g] = hn::Add(sums[g], offset);
      });
}

template <class Width, class Table>
HWY_INLINE void times_with(Width width, const Table& table, std::size_t rows, const float* x, const float* w,
                           const float* bias, float* y) {
  const Floats d;
  const hn::Vec<Floats> offset = offset_of(bias);
  for_each_group<1>(
      width, rows, x, y, [&](const float* from, hn::Vec<Floats>* sums) HWY_ATTR __attribute__((always_inline)) {
        hn::Vec<Floats> sum = hn::Zero(d);
        for (std::size_t f = 0; f < width; ++f) {
          sum = hn::Add(sum, hn::Mul(column(from, f, width, table), hn::Set(d, w[f])));
        }
        *sums = hn::Add(sum, offset);
      });
}

template <std::size_t width>
HWY_INLINE void times_known(std::size_t rows, const std::int32_t* table, const float* x, const float* w,
                            const float* bias, float* y) {
  constexpr std::size_t vectors = PMAPTRAIN_HAS_MERGE && width > 1 ? width * (width - 1) : 1;
  hn::Vec<Places> places[vectors];
  for (std::size_t i = 0; i < vectors; ++i) {
    places[i] =
        width > 1 || !PMAPTRAIN_HAS_MERGE ? hn::LoadU(Places(), table + i * hn::Lanes(Places())) : hn::Zero(Places());
  }
  const auto registers = [&](std::size_t i) HWY_ATTR { return places[i]; };
  times_with(std::integral_constant<std::size_t, width>(), registers, rows, x, w, bias, y);
}

void times(std::size_t rows, std::size_t width, const std::int32_t* table, const float* x, const float* w,
           const float* bias, float* y) {
  switch (width) {
    case 1: return times_known<1>(rows, table, x, w, bias, y);
    case 2: return times_known<2>(rows, table, x, w, bias, y);
    case 4: return times_known<4>(rows, table, x, w, bias, y);
    default: break;
  }
  if constexpr (most_lanes > 1) {
    switch (width) {
      case 3: return times_turned<3>(rows, table, x, w, bias, y);
      case 5: return times_turned<5>(rows, table, x, w, bias, y);
      case 7: return times_turned<7>(rows, table, x, w, bias, y);
      case 9: return times_turned<9>(rows, table, x, w, bias, y);
      case 11: return times_turned<11>(rows, table, x, w, bias, y);
      case 13: return times_turned<13>(rows, table, x, w, bias, y);
      case 15: return times_turned<15>(rows, table, x, w, bias, y);
      default: break;
    }
  }
  const auto memory = [&](std::size_t i) HWY_ATTR { return hn::LoadU(Places(), table + i * hn::Lanes(Places())); };
  times_with(width, memory, rows, x, w, bias, y);
}

// Adds `vectors` neighbouring vectors of each group of rows to `sums`, after multiplying each element by the g of its
// row. The vectors share one load of g, and their additions overlap in the CPU.
template <std::size_t vectors>
void weighted_sums(std::size_t groups, std::size_t width, const std::int32_t* rows_of_elements, const float* x,
                   const float* g, float* sums) {
  const Floats d;
  const std::size_t lanes = hn::Lanes(d);
  decltype(hn::SetTableIndices(d, rows_of_elements)) rows[vectors];
  hn::Vec<Floats> sum[vectors];
  for (std::size_t v = 0; v < vectors; ++v) {
    rows[v] = hn::SetTableIndices(d, rows_of_elements + v * lanes);
    sum[v] = hn::LoadU(d, sums + v * lanes);
  }
  for (std::size_t i = 0; i < groups; ++i) {
    const hn::Vec<Floats> factors = hn::LoadU(d, g + i * lanes);
    for (std::size_t v = 0; v < vectors; ++v) {
      const hn::Vec<Floats> elements = hn::LoadU(d, x + i * lanes * width + v * lanes);
      sum[v] = hn::Add(sum[v], hn::Mul(elements, hn::TableLookupLanes(factors, rows[v])));
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sum[v], d, sums + v * lanes);
}

void weighted_sum(std::size_t rows, std::size_t width, const std::int32_t* table, const float* x, const float* g,
                  float* out) {
  const std::size_t lanes = hn::Lanes(Floats());
  const std::size_t whole = rows / lanes;
  HWY_ALIGN float sums[NarrowRows::widest * most_lanes] = {};
  const auto add = [&](std::size_t groups, const float* from, const float* factors) HWY_ATTR {
    for (std::size_t v = 0; v < width;) {
      const std::int32_t* const own = table + v * lanes;
      const std::size_t at = v * lanes;
      switch (std::min<std::size_t>(width - v, 5)) {
        case 1:
          weighted_sums<1>(groups, width, own, from + at, factors, sums + at);
          v += 1;
          break;
        case 2:
          weighted_sums<2>(groups, width, own, from + at, factors, sums + at);
          v += 2;
          break;
        case 3:
          weighted_sums<3>(groups, width, own, from + at, factors, sums + at);
          v += 3;
          break;
        case 4:
          weighted_sums<4>(groups, width, own, from + at, factors, sums + at);
          v += 4;
          break;
        default:
          weighted_sums<5>(groups, width, own, from + at, factors, sums + at);
          v += 5;
          break;
      }
    }
  };
  add(whole, x, g);
  if (whole * lanes < rows) {
    HWY_ALIGN float last[NarrowRows::widest * most_lanes];
    HWY_ALIGN float last_g[most_lanes];
    pad((rows - whole * lanes) * width, width, x + whole * lanes * width, last);
    pad(rows - whole * lanes, 1, g + whole * lanes, last_g);
    add(1, last, last_g);
  }
  // `sums` has one partial sum for each row of a group. Add the second half of them to the first half until one is
  // left. The last vector of a half may reach into the other one, where nothing is read any more.
  for (std::size_t half = lanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half * width; i += lanes) {
      const hn::Vec<Floats> second = hn::LoadU(Floats(), sums + half * width + i);
      hn::StoreU(hn::Add(hn::LoadU(Floats(), sums + i), second), Floats(), sums + i);
    }
  }
  std::copy_n(sums, width, out);
}

// Like reduce_contiguous<SumReducer>: sums `width` accumulators in parallel, then adds halves to halves.
template <std::size_t width>
HWY_INLINE void reduce(std::size_t& n, const float*& x, float& total) {
  const hn::CappedTag<float, width> d;
  constexpr std::size_t lanes = hn::MaxLanes(d), vectors = width / lanes, block = 256;
  while (n >= width) {
    const std::size_t rounds = std::min(n / width, block);
    hn::Vec<decltype(d)> sum[vectors];
    for (std::size_t v = 0; v < vectors; ++v) sum[v] = hn::LoadU(d, x + v * lanes);
    for (std::size_t i = 1; i < rounds; ++i) {
      for (std::size_t v = 0; v < vectors; ++v) sum[v] = hn::Add(sum[v], hn::LoadU(d, x + i * width + v * lanes));
    }
    for (std::size_t half = vectors / 2; half > 0; half /= 2) {
      for (std::size_t v = 0; v < half; ++v) sum[v] = hn::Add(sum[v], sum[v + half]);
    }
    HWY_ALIGN float last[lanes];
    hn::Store(sum[0], d, last);
    for (std::size_t half = lanes / 2; half > 0; half /= 2) {
      for (std::size_t i = 0; i < half; ++i) last[i] += last[i + half];
    }
    total += last[0];
    x += rounds * width;
    n -= rounds * width;
  }
}

float sum(std::size_t n, const float* x) {
  float total = -0.0F;
  reduce<64>(n, x, total);
  reduce<16>(n, x, total);
  for (std::size_t i = 0; i < n; ++i) total += x[i];
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain {

HWY_EXPORT(fill_transposition);
HWY_EXPORT(fill_row_of_element);
HWY_EXPORT(times);
HWY_EXPORT(weighted_sum);
HWY_EXPORT(sum);

NarrowRows::NarrowRows(std::size_t width) : width_(width) {
  assert(width >= 1 && width <= widest);
  HWY_DYNAMIC_DISPATCH(fill_transposition)(width, transposition_);
  HWY_DYNAMIC_DISPATCH(fill_row_of_element)(width, row_of_element_);
}

void NarrowRows::times(std::size_t rows, const float* x, const float* w, const float* bias, float* y) const {
  HWY_DYNAMIC_DISPATCH(times)(rows, width_, transposition_.data(), x, w, bias, y);
}

void NarrowRows::weighted_sum(std::size_t rows, const float* x, const float* g, float* out) const {
  HWY_DYNAMIC_DISPATCH(weighted_sum)(rows, width_, row_of_element_.data(), x, g, out);
}

float vector_sum(std::size_t n, const float* x) { return HWY_DYNAMIC_DISPATCH(sum)(n, x); }

}  // namespace pmaptrain
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
