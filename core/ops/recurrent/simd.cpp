// Compiled once for each instruction set; the best one for the CPU is chosen when the program runs.
#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include "core/ops/recurrent/simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/ops/recurrent/simd.cpp"
// foreach_target.h comes first: it includes this file again for each other instruction set.
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include "core/kernel/vector_exp-inl.h"
#include "core/kernel/vector_tiles-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pmaptrain::ops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using pmaptrain::HWY_NAMESPACE::columns_together, pmaptrain::HWY_NAMESPACE::rows_together;
using pmaptrain::HWY_NAMESPACE::Floats, pmaptrain::HWY_NAMESPACE::Vector, pmaptrain::HWY_NAMESPACE::lanes;
using pmaptrain::HWY_NAMESPACE::multiply_block, pmaptrain::HWY_NAMESPACE::up_to;
static_assert(recurrent_rows == rows_together && panel_columns % (2 * columns_together) == 0);

// The part of a panel that is multiplied at a time, which the first cache holds beside the rows.
constexpr std::size_t depth_together = 128;

void multiply(std::size_t rows, std::size_t depth, std::size_t columns, const float* a, std::size_t a_row,
              const float* panels, float* c, std::size_t c_row, bool add) {
  for (std::size_t j = 0; j < columns; j += panel_columns, panels += depth * panel_columns) {
    for (std::size_t p = 0; p < depth; p += depth_together) {
      multiply_block(up_to(rows, rows_together), panel_columns, std::min(depth_together, depth - p), {a + p, a_row, 1},
                     panels + p * panel_columns, panel_columns, c + j, c_row, add || p > 0);
    }
  }
}

// Some neighbouring features: as many as a vector has, or fewer at the end of a row.
struct Place {
  std::size_t at, count;

  HWY_INLINE Vector load(const float* from) const {
    if (count == lanes) return hn::LoadU(Floats(), from + at);
    HWY_ALIGN float rest[lanes] = {};
    std::copy_n(from + at, count, rest);
    return hn::Load(Floats(), rest);
  }
  HWY_INLINE void store(Vector x, float* to) const {
    if (count == lanes) return hn::StoreU(x, Floats(), to + at);
    HWY_ALIGN float rest[lanes];
    hn::Store(x, Floats(), rest);
    std::copy_n(rest, count, to + at);
  }
};

HWY_INLINE Vector tanh_of(Vector x) { return pmaptrain::HWY_NAMESPACE::SafeTanh{}(Floats(), x); }

// The product with ½ is exact.
HWY_INLINE Vector sigmoid_of(Vector x) {
  const Vector half = hn::Set(Floats(), 0.5F);
  return hn::MulAdd(half, tanh_of(hn::Mul(half, x)), half);
}

HWY_INLINE Vector one() { return hn::Set(Floats(), 1.0F); }

void lstm(std::size_t features, const float* sums, float* cell, float* hidden, float* gates) {
  for (std::size_t at = 0; at < features; at += lanes) {
    const Place here{at, std::min(lanes, features - at)};
    const Vector i = sigmoid_of(here.load(sums)), f = sigmoid_of(here.load(sums + features));
    const Vector g = tanh_of(here.load(sums + 2 * features)), o = sigmoid_of(here.load(sums + 3 * features));
    const Vector c = hn::MulAdd(f, here.load(cell), hn::Mul(i, g));
    here.store(i, gates);
    here.store(f, gates + features);
    here.store(g, gates + 2 * features);
    here.store(o, gates + 3 * features);
    here.store(c, cell);
    here.store(hn::Mul(o, tanh_of(c)), hidden);
  }
}

void lstm_gradient(std::size_t features, const float* gates, const float* cell, const float* before, const float* dout,
                   const float* dhidden, float* dcell, float* dsums) {
  for (std::size_t at = 0; at < features; at += lanes) {
    const Place here{at, std::min(lanes, features - at)};
    const Vector i = here.load(gates), f = here.load(gates + features), g = here.load(gates + 2 * features);
    const Vector o = here.load(gates + 3 * features), most = tanh_of(here.load(cell));
    const Vector dh = hn::Add(here.load(dout), here.load(dhidden));
    const Vector dc = hn::MulAdd(hn::Mul(dh, o), hn::NegMulAdd(most, most, one()), here.load(dcell));
    here.store(hn::Mul(hn::Mul(dc, g), hn::Mul(i, hn::Sub(one(), i))), dsums);
    here.store(hn::Mul(hn::Mul(dc, here.load(before)), hn::Mul(f, hn::Sub(one(), f))), dsums + features);
    here.store(hn::Mul(hn::Mul(dc, i), hn::NegMulAdd(g, g, one())), dsums + 2 * features);
    here.store(hn::Mul(hn::Mul(dh, most), hn::Mul(o, hn::Sub(one(), o))), dsums + 3 * features);
    here.store(hn::Mul(dc, f), dcell);
  }
}

void gru(std::size_t features, const float* sums, const float* n_input, float* hidden, float* gates) {
  for (std::size_t at = 0; at < features; at += lanes) {
    const Place here{at, std::min(lanes, features - at)};
    const Vector r = sigmoid_of(here.load(sums)), z = sigmoid_of(here.load(sums + features));
    const Vector product = here.load(sums + 2 * features);
    const Vector n = tanh_of(hn::MulAdd(r, product, here.load(n_input)));
    here.store(r, gates);
    here.store(z, gates + features);
    here.store(n, gates + 2 * features);
    here.store(product, gates + 3 * features);
    here.store(hn::MulAdd(z, here.load(hidden), hn::Mul(hn::Sub(one(), z), n)), hidden);
  }
}

void gru_gradient(std::size_t features, const float* gates, const float* before, const float* dout, float* dhidden,
                  float* dinputs, float* dproduct) {
  for (std::size_t at = 0; at < features; at += lanes) {
    const Place here{at, std::min(lanes, features - at)};
    const Vector r = here.load(gates), z = here.load(gates + features), n = here.load(gates + 2 * features);
    const Vector dh = hn::Add(here.load(dout), here.load(dhidden));
    const Vector dn = hn::Mul(hn::Mul(dh, hn::Sub(one(), z)), hn::NegMulAdd(n, n, one()));
    const Vector dz = hn::Mul(hn::Mul(dh, hn::Sub(here.load(before), n)), hn::Mul(z, hn::Sub(one(), z)));
    here.store(hn::Mul(hn::Mul(dn, here.load(gates + 3 * features)), hn::Mul(r, hn::Sub(one(), r))), dinputs);
    here.store(dz, dinputs + features);
    here.store(dn, dinputs + 2 * features);
    here.store(hn::Mul(dn, r), dproduct);
    here.store(hn::Mul(dh, z), dhidden);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pmaptrain::ops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pmaptrain::ops {

HWY_EXPORT(multiply);
HWY_EXPORT(lstm);
HWY_EXPORT(lstm_gradient);
HWY_EXPORT(gru);
HWY_EXPORT(gru_gradient);

void pack_panels(std::size_t depth, std::size_t columns, const float* matrix, float* panels) {
  for (std::size_t j = 0; j < columns; j += panel_columns) {
    const std::size_t here = std::min(panel_columns, columns - j);
    for (std::size_t p = 0; p < depth; ++p, panels += panel_columns) {
      std::copy_n(matrix + p * columns + j, here, panels);
      std::fill(panels + here, panels + panel_columns, 0.0F);
    }
  }
}

void multiply_panels(std::size_t rows, std::size_t depth, std::size_t columns, const float* a, std::size_t a_row,
                     const float* panels, float* c, std::size_t c_row, bool add) {
  HWY_DYNAMIC_DISPATCH(multiply)(rows, depth, columns, a, a_row, panels, c, c_row, add);
}

void lstm_cell(std::size_t features, const float* sums, float* cell, float* hidden, float* gates) {
  HWY_DYNAMIC_DISPATCH(lstm)(features, sums, cell, hidden, gates);
}

void lstm_cell_gradient(std::size_t features, const float* gates, const float* cell, const float* before,
                        const float* dout, const float* dhidden, float* dcell, float* dsums) {
  HWY_DYNAMIC_DISPATCH(lstm_gradient)(features, gates, cell, before, dout, dhidden, dcell, dsums);
}

void gru_cell(std::size_t features, const float* sums, const float* n_input, float* hidden, float* gates) {
  HWY_DYNAMIC_DISPATCH(gru)(features, sums, n_input, hidden, gates);
}

void gru_cell_gradient(std::size_t features, const float* gates, const float* before, const float* dout, float* dhidden,
                       float* dinputs, float* dproduct) {
  HWY_DYNAMIC_DISPATCH(gru_gradient)(features, gates, before, dout, dhidden, dinputs, dproduct);
}

}  // namespace pmaptrain::ops
#endif  // HWY_ONCE

#endif  // PMAPTRAIN_REFERENCE_KERNELS
