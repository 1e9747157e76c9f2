#include "core/layers/rows.h"

#include <algorithm>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/layers/lengths.h"

namespace pmaptrain::layers {
namespace {

using Dims = std::vector<std::int64_t>;

// The mean over `dims`: a value for each of the other dimensions.
Value mean_of(Builder& b, Value x, const Statistics& of, std::optional<Value> lengths) {
  if (!lengths) return div(b, b.emit(ops::ReduceSum{of.dims}, {x}), of.count());
  const Value sum = b.emit(ops::ReduceSum{of.dims}, {inside_or(b, *lengths, x, 0)});
  const Value some = b.emit(ops::Max{}, {*lengths, scalar_like(b, *lengths, 1.0)});
  const Value counts = mul(b, cast(b, some, b.type(x).dtype), of.count() / static_cast<double>(of.shape.front()));
  return div(b, sum, broadcast_along(b, counts, b.type(sum).shape, 0));
}

// Such a value repeated along `dims`, in the shape of x.
Value repeated(Builder& b, Value value, Value x, const Statistics& of) {
  const Shape shape = b.type(x).shape;
  Dims kept;
  for (std::int64_t d = 0; d < std::ssize(shape); ++d) {
    if (std::find(of.dims.begin(), of.dims.end(), d) == of.dims.end()) kept.push_back(d);
  }
  return b.emit(ops::Broadcast{shape, std::move(kept)}, {value});
}

}  // namespace

Value product_of_rows(Builder& b, Value x, Value kernel, Shape matrix, std::optional<Value> bias) {
  const std::int64_t columns = matrix.back();
  if (b.type(kernel).shape != matrix) kernel = b.emit(ops::Reshape{std::move(matrix)}, {kernel});
  kernel = cast(b, kernel, b.type(x).dtype);
  if (!bias) return b.emit(ops::Matmul{}, {x, kernel});
  if (b.type(*bias).shape.size() > 1) bias = b.emit(ops::Reshape{{columns}}, {*bias});
  return b.emit(ops::Matmul{}, {x, kernel, *bias});
}

Value sum_of_terms(Builder& b, Value term, AxisSet axes, std::optional<Value> bias, DType dtype) {
  Value sum = summed_along(b, term, axes);
  if (bias) sum = add(b, sum, over_channels(b, cast(b, *bias, b.type(sum).dtype), b.type(sum).shape));
  return cast(b, sum, dtype);
}

Value at_position(Builder& b, Value x, std::int64_t position) {
  Shape limits = b.type(x).shape, starts(limits.size(), 0), shape = limits;
  starts[1] = position;
  limits[1] = position + 1;
  shape.erase(shape.begin() + 1);
  return b.emit(ops::Reshape{shape}, {b.emit(ops::Slice{starts, limits}, {x})});
}
bool over_positions(const Statistics& of) { return std::find(of.dims.begin(), of.dims.end(), 1) != of.dims.end(); }

Statistics over_last(const Shape& shape, double epsilon, bool centred) {
  return {shape, {std::ssize(shape)}, epsilon, centred};
}

// The derivative of the variance by the mean is 0, and the one of the result goes through a term that is 0: so the
// backward pass needs one array of differences, and its sums before it writes anything.
Value normalised(Builder& b, Value x, const Statistics& of, std::optional<Value> lengths) {
  const auto factor_of = [&](Value variance) { return b.emit(ops::Rsqrt{}, {add(b, variance, of.epsilon)}); };
  if (!of.centred) return mul(b, x, repeated(b, factor_of(mean_of(b, mul(b, x, x), of, lengths)), x, of));
  const Value mean = mean_of(b, x, of, lengths), fixed = b.emit(ops::StopGradient{}, {mean});
  const Value centred = sub(b, x, repeated(b, fixed, x, of));
  const Value factor = factor_of(mean_of(b, mul(b, centred, centred), of, lengths));
  const Value zero = mul(b, sub(b, fixed, mean), factor);
  return add(b, mul(b, centred, repeated(b, factor, x, of)), repeated(b, zero, x, of));
}

Value layer_normalised(Builder& b, Value x, double epsilon) {
  const Shape shape = b.type(x).shape;
  return normalised(b, x, over_last(Shape(shape.begin() + 1, shape.end()), epsilon, true));
}

Value over_channels(Builder& b, Value vector, const Shape& shape) {
  return broadcast_along(b, vector, shape, std::ssize(shape) - 1);
}

// (x - mean) * scale / sqrt(variance + epsilon) + bias, without the scale or the bias that a norm does not have. The
// derivative by the mean goes through a term of each channel that is 0, so that the backward pass needs one array of
// differences and one sum of the cotangent.
Value batch_normalised(Builder& b, Value x, const Moments& moments, double epsilon, std::optional<Value> scale,
                       std::optional<Value> bias) {
  const Shape shape = b.type(x).shape;
  Value factor = b.emit(ops::Rsqrt{}, {add(b, moments.variance, epsilon)});
  if (scale) factor = mul(b, factor, *scale);
  if (moments.centred) {
    const Value zero = mul(b, sub(b, b.emit(ops::StopGradient{}, {moments.mean}), moments.mean), factor);
    bias = bias ? add(b, *bias, zero) : zero;
  }
  const Value centred = moments.centred ? *moments.centred : sub(b, x, over_channels(b, moments.mean, shape));
  const Value y = mul(b, centred, over_channels(b, factor, shape));
  return bias ? add(b, y, over_channels(b, *bias, shape)) : y;
}

Value mean_of_positions(Builder& b, Value x, DType storage, std::optional<Value> lengths) {
  const Type type = b.type(x);
  ops::ReduceSum sum_of;
  double count = 1;
  for (std::size_t d = 1; d + 1 < type.shape.size(); ++d) {
    sum_of.dims.push_back(static_cast<std::int64_t>(d));
    count *= static_cast<double>(type.shape[d]);
  }
  if (type.dtype != storage) sum_of.preferred_element_type = storage;
  const Value sum = b.emit(sum_of, {x});
  if (!lengths) return cast(b, div(b, sum, count), type.dtype);
  const double each = count / static_cast<double>(type.shape[1]);
  const Value some = b.emit(ops::Max{}, {*lengths, scalar_like(b, *lengths, 1.0)});
  const Value counts = mul(b, cast(b, some, storage), each);
  return cast(b, div(b, sum, broadcast_along(b, counts, b.type(sum).shape, 0)), type.dtype);
}

std::string divisors_of(std::int64_t number) {
  constexpr std::int64_t most_tried = 65536;
  std::string text;
  for (std::int64_t i = 1; i <= std::min(number, most_tried); ++i) {
    if (number % i == 0) text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text;
}

}  // namespace pmaptrain::layers
