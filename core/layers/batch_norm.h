// Batch normalisation (Ioffe and Szegedy, 2015), with the formulas of Flax.
//
// In training, the mean and the biased variance of a channel are those of one microbatch: over all positions of the
// rows of a device, and over the devices along `axes`. Padding is left out by selection. Rows that have fewer than two
// values for a statistic are normalised by the running statistics and do not move them. The running statistics move
// once a step: the builder of the step adds up the sums that this layer gives (Forward::statistics).
#pragma once

#include <string>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {

// The axes of `names`. Reports an error and returns nothing for a name that is not an axis of the batch.
inline std::optional<AxisSet> statistics_axes(const declare::AxisNames& names, const LayerInput& in) {
  const Mesh& mesh = in.around.mesh;
  AxisSet axes;
  for (const std::string& name : names.names) {
    const std::optional<int> axis = mesh.find(name);
    std::string used;
    for (int i = 0; i < static_cast<int>(mesh.axes().size()); ++i) {
      if (in.around.data_axes.contains(i)) used += (used.empty() ? "" : ", ") + mesh.name(i);
    }
    if (!axis || !in.around.data_axes.contains(*axis)) {
      std::string help;
      if (axis) {  // that of an ensemble is none of this mesh
        help = "devices along it divide layers (parallelism.tensor), and have the same examples and equal statistics; ";
      }
      help += used.empty() ? "leave axes out: the batch is not divided" : "the axes of the batch are " + used;
      in.refuse("has statistics over the axis '" + name + "', over which the batch is not sharded", std::move(help));
      return std::nullopt;
    }
    axes = axes | AxisSet::of(*axis);
  }
  return axes;
}

// The statistics of a microbatch, and what the running statistics move to.
class BatchStatistics {
 public:
  BatchStatistics(const LayerCall& call, Value x, AxisSet axes)
      : b_(call.b), x_(x), shape_(b_.type(x).shape), dtype_(b_.type(x).dtype), axes_(axes) {
    for (std::int64_t d = 0; d + 1 < std::ssize(shape_); ++d) positions_.push_back(d);
    const Value mask = *call.forward.mask;
    const Value rows = b_.emit(ops::Gt{}, {mask, scalar_like(b_, mask, 0.0)});
    inside_ = shape_.size() == 1 ? rows : broadcast_along(b_, rows, shape_, 0);
    // What a statistic weighs in that of the step: examples, or their positions where these differ in number.
    Value weights = cast(b_, rows, dtype_);
    std::size_t equal = 1;  // the first dimension that all examples have alike
    if (const std::optional<Value> lengths = call.lengths()) {
      const Value of_rows = select(b_, rows, *lengths, scalar_like(b_, *lengths, 0.0));
      inside_ = is_inside(b_, of_rows, shape_);
      weights = cast(b_, of_rows, dtype_);
      equal = 2;
    }
    weight_ = sum_from(b_, weights, 0);
    double each = 1;
    for (std::size_t d = equal; d + 1 < shape_.size(); ++d) each *= static_cast<double>(shape_[d]);
    count_ = over_devices(mul(b_, weight_, each));
    enough_ = b_.emit(ops::Gt{}, {count_, scalar_like(b_, count_, 1.0)});
    weight_ = select(b_, enough_, weight_, scalar_like(b_, weight_, 0.0));
  }

  // The running statistics where there are too few values: a single one has the variance 0.
  Moments moments(const Moments& running) {
    const Value divisor = b_.emit(ops::Max{}, {count_, scalar_like(b_, count_, 1.0)});
    const Value sum = over_devices(sum_of(x_));
    const Value mean = select(b_, enough_, div(b_, sum, divisor), running.mean);
    // The derivative of the variance by the mean is 0.
    const Value fixed = b_.emit(ops::StopGradient{}, {mean});
    const Value centred = sub(b_, x_, over_channels(b_, fixed, shape_));
    const Value squares = over_devices(sum_of(mul(b_, centred, centred)));
    return {mean, select(b_, enough_, div(b_, squares, divisor), running.variance), centred};
  }

  // The sum of a statistic over what weighs in it on the device. All of it has the same statistic.
  StatisticSum weighted_sum(std::size_t parameter, Value statistic) {
    return {parameter, mul(b_, statistic, weight_), b_.emit(ops::Reshape{{1}}, {weight_})};
  }

 private:
  Value sum_of(Value x) {
    const Value kept = select(b_, inside_, x, scalar_like(b_, x, 0.0));
    return b_.emit(ops::ReduceSum{positions_}, {kept});
  }
  Value over_devices(Value sum) { return axes_.empty() ? sum : b_.emit(ops::Psum{axes_}, {sum}); }

  Builder& b_;
  Value x_;
  Shape shape_;
  DType dtype_;
  AxisSet axes_;
  std::vector<std::int64_t> positions_;  // all dimensions but the channels
  Value inside_, count_;
  Value enough_, weight_;  // whether two values or more are behind a statistic; what these weigh if so, else 0
};

struct BatchNorm {
  declare::AxisNames axes;  // over which statistics are, besides the rows of a device
  double momentum = 0.99, epsilon = 1e-5;
  bool use_scale = true, use_bias = true;
  VectorInit scale_init = {}, bias_init = {};

  static Declaration<BatchNorm> declaration() {
    return declare::kind<BatchNorm>(
        {.path = "batch_norm",
         .meaning =
             "(x - mean) / sqrt(variance + epsilon) * scale + bias. In training, the mean and the variance of each "
             "channel are those of the rows of a device, in a microbatch; a step moves running statistics to "
             "them, which evaluations use. Parameters: scale (C) and bias (C); statistics: mean (C) and var (C).",
         .example = "- batch_norm: {momentum: 0.9}"},
        field(&BatchNorm::axes, {.path = "axes",
                                 .meaning = "Axes of the mesh over which the statistics are, besides the rows "
                                            "of a device: those devices have equal statistics.",
                                 .example = "axes: [devices]"}),
        field(&BatchNorm::momentum,
              {.path = "momentum",
               .high = 1,
               .open_high = true,
               .meaning = "The share of the running statistics that a step keeps, as in Flax: 0.9 is PyTorch's 0.1.",
               .example = "momentum: 0.9"}),
        field(&BatchNorm::epsilon, epsilon_key()), field(&BatchNorm::use_scale, use_scale_key()),
        field(&BatchNorm::use_bias, use_norm_bias()), field(&BatchNorm::scale_init, layers::scale_init()),
        field(&BatchNorm::bias_init, layers::bias_init()));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    const std::optional<AxisSet> over = statistics_axes(axes, in);
    if (!over) return std::nullopt;
    Node layer = in.start();
    layer.momentum = momentum;
    layer.statistics_axes = *over;
    const auto add_parameter = [&](const char* name, const Initializer& initial, const char* torch, bool is_state) {
      Parameter& made = layer.parameters.emplace_back(in.parameter(name, {in.shape.back()}, initial));
      made.torch.field = torch;
      made.is_state = is_state;
    };
    if (use_scale) add_parameter("scale", scale_init(ones), "weight", false);
    if (use_bias) add_parameter("bias", bias_init(), "bias", false);
    in.expect_used(use_scale, scale_init, "scale");
    in.expect_used(use_bias, bias_init, "bias");
    add_parameter("mean", zeros, "running_mean", true);
    add_parameter("var", ones, "running_var", true);
    layer.apply = [*this, over = *over, storage = in.precision.storage](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const Value wide = cast(b, x, storage);
      const std::size_t first = call.parameters.size() - 2;
      Moments moments{call.parameters[first], call.parameters[first + 1]};
      if (call.training && !call.is_frozen()) {
        BatchStatistics batch(call, wide, over);
        moments = batch.moments(moments);
        if (call.forward.statistics != nullptr) {
          const std::size_t at = call.node.first_parameter + first;
          call.forward.statistics->push_back(batch.weighted_sum(at, moments.mean));
          call.forward.statistics->push_back(batch.weighted_sum(at + 1, moments.variance));
        }
      }
      std::optional<Value> scale, bias;
      if (use_scale) scale = call.parameters[0];
      if (use_bias) bias = call.parameters[use_scale ? 1 : 0];
      return cast(b, batch_normalised(b, wide, moments, epsilon, scale, bias), b.type(x).dtype);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
