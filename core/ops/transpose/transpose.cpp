#include "core/ops/transpose/transpose.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/ops/support/boxes.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// The dimensions of the result, with the operand's stride for each.
struct Layout {
  Dims sizes;
  Dims from;  // operand strides
  Dims to;    // result strides
};

// Drops dimensions of size 1 and joins dimensions that are neighbours in the operand and in the result.
Layout simplified(const Shape& result, const Shape& operand, std::span<const std::int64_t> permutation) {
  const Dims operand_strides = row_major(operand);
  Layout layout;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == 1) continue;
    const std::int64_t stride = operand_strides[static_cast<std::size_t>(permutation[i])];
    if (layout.sizes.rank > 0 && layout.from[layout.from.rank - 1] == stride * result[i]) {
      layout.sizes[layout.sizes.rank - 1] *= result[i];
      layout.from[layout.from.rank - 1] = stride;
    } else {
      layout.sizes.push(result[i]);
      layout.from.push(stride);
    }
  }
  layout.to = row_major(layout.sizes.span());
  return layout;
}

// to[r * to_stride + c] = from[r + c * from_stride], in tiles that fit the cache on both sides.
template <class T>
void transpose_plane(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride, std::int64_t rows,
                     std::int64_t columns) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += tile) {
    const std::int64_t r1 = std::min(rows, r0 + tile);
    for (std::int64_t c0 = 0; c0 < columns; c0 += tile) {
      const std::int64_t c1 = std::min(columns, c0 + tile);
      for (std::int64_t r = r0; r < r1; ++r) {
        for (std::int64_t c = c0; c < c1; ++c) to[r * to_stride + c] = from[r + c * from_stride];
      }
    }
  }
}

}  // namespace

std::vector<Type> Transpose::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& x = context.operands[0];
  expect_rank(name, x.shape);
  std::vector<std::int64_t> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != all_dims(x.shape)) {
    throw TypeError(
        6,
        fmt::format("{}: {} is not a permutation of the dimensions of {}", name, to_string(permutation), describe(x)),
        fmt::format("name each of its {} dimensions once", x.shape.size()));
  }
  Shape shape;
  for (std::int64_t dim : permutation) shape.push_back(x.shape[static_cast<std::size_t>(dim)]);
  return one_result(x.dtype, std::move(shape));
}

Cost Transpose::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Transpose::derivative(VjpContext& context) const {
  std::vector<std::int64_t> inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<std::size_t>(permutation[i])] = static_cast<std::int64_t>(i);
  }
  return {context.b.emit(Transpose{inverse}, {*context.cotangents[0]})};
}

void Transpose::reference(const ReferenceCall& call) const {
  if (call.results[0].size() == 0) return;
  const Layout layout = simplified(call.results[0].shape(), call.operands[0].shape(), permutation);
  const std::size_t rank = layout.sizes.rank;
  if (rank == 0 || layout.from[rank - 1] == 1) {
    copy_box(layout.sizes.span(), call.operands[0].data, layout.from, call.results[0].data, layout.to,
             size_of(call.results[0].dtype()));
    return;
  }
  // The operand's contiguous dimension is not the result's: process planes of these two dimensions.
  std::size_t contiguous = 0;
  while (layout.from[contiguous] != 1) ++contiguous;
  Dims sizes, from, to;
  for (std::size_t d = 0; d + 1 < rank; ++d) {
    if (d == contiguous) continue;
    sizes.push(layout.sizes[d]);
    from.push(layout.from[d]);
    to.push(layout.to[d]);
  }
  dispatch(call.results[0].dtype(), [&]<class T>() {
    const T* x = call.operands[0].as<T>();
    T* y = call.results[0].as<T>();
    walk(sizes.span(), from.span(), to.span(), [&](std::int64_t a, std::int64_t b) {
      transpose_plane(x + a, layout.from[rank - 1], y + b, layout.to[contiguous], layout.sizes[contiguous],
                      layout.sizes[rank - 1]);
    });
  });
}

}  // namespace pmaptrain::ops
