// Normalisation of each example by itself, with the formulas of Flax.
//
// Statistics are computed in the type of parameters, in two passes: the mean, then the mean of squared differences from
// it. So a mean much larger than the standard deviation costs no digits.
#pragma once

#include <string>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {

inline Shape with_rows(std::int64_t rows, const Shape& example) {
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
    layer.parameters.push_back(in.parameter("scale", channels, norm.scale_init(ones)));
    layer.parameters.back().torch.field = "weight";
  }
  if (norm.use_bias) layer.parameters.push_back(in.parameter("bias", channels, norm.bias_init()));
  in.expect_used(norm.use_scale, norm.scale_init, "scale");
  in.expect_used(norm.use_bias, norm.bias_init, "bias");
  layer.apply = [of, scaled = norm.use_scale, storage = in.precision.storage](const LayerCall& call, Value x) {
    Builder& b = call.b;
    const Type type = b.type(x);
    Value y = cast(b, x, storage);
    const bool reshaped = of.shape != call.node.input;
    if (reshaped) y = b.emit(ops::Reshape{with_rows(type.shape.front(), of.shape)}, {y});
    y = normalised(b, y, of, over_positions(of) ? call.lengths() : std::nullopt);
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

struct LayerNorm {
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};

  static Declaration<LayerNorm> declaration() {
    return declare::kind<LayerNorm>(
        {.path = "layer_norm",
         .meaning =
             "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the variance over the last "
             "dimension. Parameters: scale (C) and bias (C).",
         .example = "- layer_norm"},
        field(&LayerNorm::epsilon, epsilon_key()), field(&LayerNorm::use_scale, use_scale_key()),
        field(&LayerNorm::use_bias, use_norm_bias()), field(&LayerNorm::scale_init, layers::scale_init()),
        field(&LayerNorm::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    return plan_norm(*this, in, over_last(in.shape, epsilon, true));
  }
};

struct RmsNorm {
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = false;
  VectorInit scale_init = {}, bias_init = {};

  static Declaration<RmsNorm> declaration() {
    return declare::kind<RmsNorm>(
        {.path = "rms_norm",
         .meaning =
             "x / sqrt(mean of x * x + epsilon) * scale, with the mean over the last dimension. Parameters: scale "
             "(C) and, with use_bias, bias (C).",
         .example = "- rms_norm"},
        field(&RmsNorm::epsilon, epsilon_key()), field(&RmsNorm::use_scale, use_scale_key()),
        field(&RmsNorm::use_bias, use_norm_bias()), field(&RmsNorm::scale_init, layers::scale_init()),
        field(&RmsNorm::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    return plan_norm(*this, in, over_last(in.shape, epsilon, false));
  }
};

struct GroupNorm {
  std::int64_t num_groups = 32;
  double epsilon = 1e-6;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};

  static Declaration<GroupNorm> declaration() {
    return declare::kind<GroupNorm>(
        {.path = "group_norm",
         .meaning =
             "(x - mean) / sqrt(variance + epsilon) * scale + bias, with the mean and the variance of each group "
             "of channels over all positions of an example. Parameters: scale (C) and bias (C).",
         .example = "- group_norm: {num_groups: 8}"},
        field(&GroupNorm::num_groups, {.path = "num_groups",
                                       .low = 1,
                                       .meaning = "The number of groups, which divides the channels.",
                                       .example = "num_groups: 8"}),
        field(&GroupNorm::epsilon, epsilon_key()), field(&GroupNorm::use_scale, use_scale_key()),
        field(&GroupNorm::use_bias, use_norm_bias()), field(&GroupNorm::scale_init, layers::scale_init()),
        field(&GroupNorm::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    const std::int64_t channels = in.shape.back();
    if (channels % num_groups != 0) {
      return in.refuse("has num_groups " + std::to_string(num_groups) + ", which does not divide the " +
                           std::to_string(channels) + " channels of its input " + in.shown(),
                       "num_groups may be one of " + divisors_of(channels));
    }
    // As [positions, groups, C / groups], with the statistics of each group.
    const std::int64_t positions = numel(in.shape) / channels;
    return plan_norm(*this, in, {{positions, num_groups, channels / num_groups}, {1, 3}, epsilon});
  }
};

}  // namespace pmaptrain::layers
