// Normalisation of each example by itself: layer_norm, rms_norm and group_norm, with the formulas of Flax.
//
// Statistics are computed in the type of parameters, in two passes: the mean, then the mean of squared differences from
// it. So a mean much larger than the standard deviation costs no digits.
#include <algorithm>
#include <string>

#include "core/equations/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/rows.h"

namespace pmaptrain::model {
namespace {

using Dims = std::vector<std::int64_t>;

// The mean over `dims`: a value for each of the other dimensions.
Value mean_of(Builder& b, Value x, const Statistics& of) {
  return div(b, b.emit(ops::ReduceSum{of.dims}, {x}), of.count());
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

Shape with_rows(std::int64_t rows, const Shape& example) {
  Shape shape{rows};
  shape.insert(shape.end(), example.begin(), example.end());
  return shape;
}

// The layer with parameters for the last dimension, if they are used: y · scale + bias.
template <class Norm>
Node plan_norm(const Norm& norm, const LayerInput& in, const Statistics& of) {
  Node layer = in.start();
  const Shape channels{in.shape.back()};
  if (norm.use_scale) {
    layer.parameters.push_back(in.parameter("scale", channels, initializer_of(norm.scale_init, ones)));
    layer.parameters.back().torch.field = "weight";
  }
  if (norm.use_bias) layer.parameters.push_back(in.parameter("bias", channels, initializer_of(norm.bias_init)));
  in.expect_used(norm.use_scale, norm.scale_init, "scale");
  in.expect_used(norm.use_bias, norm.bias_init, "bias");
  layer.apply = [of, scaled = norm.use_scale, storage = in.precision.storage](const LayerCall& call, Value x) {
    Builder& b = call.b;
    const Type type = b.type(x);
    Value y = cast(b, x, storage);
    const bool reshaped = of.shape != call.node.input;
    if (reshaped) y = b.emit(ops::Reshape{with_rows(type.shape.front(), of.shape)}, {y});
    y = normalised(b, y, of);
    if (reshaped) y = b.emit(ops::Reshape{type.shape}, {y});
    const std::int64_t last = std::ssize(type.shape) - 1;
    for (std::size_t i = 0; i < call.parameters.size(); ++i) {
      const Value each = broadcast_along(b, call.parameters[i], type.shape, last);
      y = scaled && i == 0 ? mul(b, y, each) : add(b, y, each);
    }
    return cast(b, y, type.dtype);
  };
  return layer;
}

std::optional<Node> refuse_scalar(const LayerInput& in) {
  return in.refuse("takes features [..., C]; its input is " + in.shown(),
                   "add flatten before it, which gives the shape [1]");
}

Statistics over_last(const Shape& shape, double epsilon, bool centred) {
  return {shape, {std::ssize(shape)}, epsilon, centred};
}

// [..., C] as [positions, groups, C / groups], with the statistics of each group.
Statistics over_groups(const Shape& shape, std::int64_t groups, double epsilon) {
  const std::int64_t channels = shape.back();
  const std::int64_t positions = numel(Shape(shape.begin(), shape.end() - 1));
  return {{positions, groups, channels / groups}, {1, 3}, epsilon};
}

}  // namespace

// The derivative of the variance by the mean is 0, and the one of the result goes through a term that is 0: so the
// backward pass needs one array of differences, and its sums before it writes anything.
Value normalised(Builder& b, Value x, const Statistics& of) {
  const auto factor_of = [&](Value variance) { return b.emit(ops::Rsqrt{}, {add(b, variance, of.epsilon)}); };
  if (!of.centred) return mul(b, x, repeated(b, factor_of(mean_of(b, mul(b, x, x), of)), x, of));
  const Value mean = mean_of(b, x, of), fixed = b.emit(ops::StopGradient{}, {mean});
  const Value centred = sub(b, x, repeated(b, fixed, x, of));
  const Value factor = factor_of(mean_of(b, mul(b, centred, centred), of));
  const Value zero = mul(b, sub(b, fixed, mean), factor);
  return add(b, mul(b, centred, repeated(b, factor, x, of)), repeated(b, zero, x, of));
}

Value layer_normalised(Builder& b, Value x, double epsilon) {
  const Shape shape = b.type(x).shape;
  return normalised(b, x, over_last(Shape(shape.begin() + 1, shape.end()), epsilon, true));
}

std::optional<Node> plan(const spec::LayerNorm& norm, const LayerInput& in) {
  if (in.shape.empty()) return refuse_scalar(in);
  return plan_norm(norm, in, over_last(in.shape, norm.epsilon, true));
}

std::optional<Node> plan(const spec::RmsNorm& norm, const LayerInput& in) {
  if (in.shape.empty()) return refuse_scalar(in);
  return plan_norm(norm, in, over_last(in.shape, norm.epsilon, false));
}

std::optional<Node> plan(const spec::GroupNorm& norm, const LayerInput& in) {
  if (in.shape.empty()) return refuse_scalar(in);
  const std::int64_t channels = in.shape.back();
  if (channels % norm.num_groups != 0) {
    return in.refuse("has num_groups " + std::to_string(norm.num_groups) + ", which does not divide the " +
                         std::to_string(channels) + " channels of its input " + in.shown(),
                     "num_groups may be one of " + divisors_of(channels));
  }
  return plan_norm(norm, in, over_groups(in.shape, norm.num_groups, norm.epsilon));
}

}  // namespace pmaptrain::model
