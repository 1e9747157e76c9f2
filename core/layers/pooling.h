// Pooling over windows of an image, a sequence or a volume, separately for each channel; and over all positions.
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"
#include "core/layers/window.h"

namespace pmaptrain::layers {

// Windows over the positions of sequences [B,T,C]. Positions behind those of an example count as padding does. What is
// behind the windows of an example is finite.
inline Value pooled_positions(const LayerCall& call, const ops::MaxPool& op, Value x) {
  Builder& b = call.b;
  const Value kept = call.inside_or(x, below_all);
  const Value most = without_height(b, b.emit(op, {with_height(b, kept, 1)}));
  if (!call.node.lengths || !call.forward.lengths) return most;
  return inside_or(b, call.node.lengths->at(b, *call.forward.lengths), most, 0);
}

inline Value pooled_positions(const LayerCall& call, ops::AvgPool op, Value x) {
  Builder& b = call.b;
  const auto pooled = [&](Value y) { return without_height(b, b.emit(op, {with_height(b, y, 1)})); };
  const std::optional<Value> lengths = call.lengths();
  if (!lengths) return pooled(x);
  const Value sums = call.inside_or(x, 0);
  if (op.count_include_pad) return pooled(sums);
  // The share of a window that is no padding divides the mean over all of it.
  op.count_include_pad = true;
  const Value mean = pooled(sums);
  const Type type = b.type(x), result = b.type(mean);
  const Value inside = cast(b, is_inside(b, *lengths, {type.shape[0], type.shape[1], 1}), type.dtype);
  const Value share = b.emit(ops::Reshape{{result.shape[0], result.shape[1]}}, {pooled(inside)});
  const Value some = b.emit(ops::Gt{}, {share, scalar_like(b, share, 0.0)});
  const Value divisor = select(b, some, share, scalar_like(b, share, 1.0));
  return div(b, mean, b.emit(ops::Broadcast{result.shape, {0, 1}}, {divisor}));
}

// Windows over depth, height and width of volumes [B,D,H,W,C]: those over depth and height, of images with the widths
// among their channels, and then those over the widths of what they give. Of equal maxima of a window the one of the
// least width has the gradient, where frameworks take the one of the least depth.
template <class Op>
Value pooled_volumes(Builder& b, const Op& op, Value x) {
  const auto with = [&](std::vector<std::int64_t> window, std::vector<std::int64_t> strides,
                        std::vector<std::pair<std::int64_t, std::int64_t>> padding) {
    Op made = op;
    made.window = std::move(window), made.strides = std::move(strides), made.padding = std::move(padding);
    return made;
  };
  const auto shaped = [&](Value y, Shape shape) { return b.emit(ops::Reshape{std::move(shape)}, {y}); };
  const Shape in = b.type(x).shape;
  const Value images = shaped(x, {in[0], in[1], in[2], in[3] * in[4]});
  const Value slices = b.emit(
      with({op.window[0], op.window[1]}, {op.strides[0], op.strides[1]}, {op.padding[0], op.padding[1]}), {images});
  const std::int64_t depth = b.type(slices).shape[1], height = b.type(slices).shape[2];
  const Value rows = shaped(slices, {in[0], depth * height, in[3], in[4]});
  const Value pooled = b.emit(with({1, op.window[2]}, {1, op.strides[2]}, {{0, 0}, op.padding[2]}), {rows});
  return shaped(pooled, {in[0], depth, height, b.type(pooled).shape[2], in[4]});
}

// The checks and the geometry of pooling over windows; `make_op` makes the op from the geometry.
template <class Pool, class MakeOp>
std::optional<Node> plan_pooling(const Pool& pool, const LayerInput& in, Node layer, MakeOp make_op) {
  if (!takes_windows(in, "window_shape", pool.window_shape, "move flatten and dense layers after the pooling"))
    return {};
  if (pool.padding.kind == PaddingKind::causal) {
    return in.refuse("has padding CAUSAL, which is for conv over positions", "padding: SAME or VALID");
  }
  const Window window = place_window(pool.padding, in.shape, pool.window_shape, pool.strides, {1, 1, 1});
  if (!window.fits()) {
    return in.refuse("has window_shape " + to_string(pool.window_shape) + " with padding " + describe(pool.padding) +
                         ", which does not fit into its input " + in.shown(),
                     "use a smaller window_shape, padding: SAME, or fewer pooling layers before it");
  }
  layer.output = window.output;
  layer.output.push_back(in.shape.back());
  layer.image = image_of_windows(layer.output);
  if (!set_lengths(in, window, pool.padding, pool.window_shape.front(), pool.strides.front(), layer)) return {};
  layer.apply = [op = make_op(as_image(window)), dimensions = window.output.size()](const LayerCall& call, Value x) {
    if (dimensions == 1) return pooled_positions(call, op, x);
    return dimensions == 2 ? call.b.emit(op, {x}) : pooled_volumes(call.b, op, x);
  };
  return layer;
}

// Reports a pool over all positions whose input has none.
inline std::optional<Node> refuse_global_pool(const LayerInput& in) {
  return in.refuse("takes positions with channels, such as [height,width,channels]; its input is " + in.shown(),
                   "move flatten and dense layers after the pooling, or leave it out");
}

struct MaxPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};

  static Declaration<MaxPool> declaration() {
    return declare::kind<MaxPool>(
        {.path = "max_pool",
         .meaning = "The maximum of each window.",
         .example = "- max_pool: {window_shape: [2, 2], strides: [2, 2]}"},
        field(&MaxPool::window_shape, layers::window_shape()), field(&MaxPool::strides, window_strides()),
        field(&MaxPool::padding, window_padding("As for conv, except CAUSAL; padding counts as -infinity.")));
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    return plan_pooling(*this, in, LayerInput::keeping(in.start_with_input_dtype()), [&](const Window& window) {
      return ops::MaxPool{as_image(window_shape), as_image(strides), window.padding};
    });
  }
};

struct AvgPool {
  std::vector<std::int64_t> window_shape, strides;
  Padding padding{PaddingKind::valid, {}};
  bool count_include_pad = true;

  static Declaration<AvgPool> declaration() {
    return declare::kind<AvgPool>(
        {.path = "avg_pool",
         .meaning = "The mean of each window.",
         .example = "- avg_pool: {window_shape: [2, 2], strides: [2, 2]}"},
        field(&AvgPool::window_shape, layers::window_shape()), field(&AvgPool::strides, window_strides()),
        field(&AvgPool::padding, window_padding("As for conv, except CAUSAL.")),
        field(&AvgPool::count_include_pad,
              {.path = "count_include_pad",
               .meaning = "Whether padding is included in the mean as zeros; false: the mean excludes it.",
               .example = "count_include_pad: false"}));
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    return plan_pooling(*this, in, LayerInput::keeping(in.start()), [&](const Window& window) {
      return ops::AvgPool{as_image(window_shape), as_image(strides), window.padding, count_include_pad};
    });
  }
};

// The maximum over all dimensions but the last.
struct GlobalMaxPool {
  static Declaration<GlobalMaxPool> declaration() {
    return declare::kind<GlobalMaxPool>({.path = "global_max_pool",
                                         .meaning = "The maximum of each channel, the last dimension, over all others.",
                                         .example = "- global_max_pool"});
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() < 2) return refuse_global_pool(in);
    Node layer = LayerInput::keeping(in.start_with_input_dtype());
    layer.output = {in.shape.back()};
    layer.image = {};
    layer.lengths.reset();
    // One window over all positions, of an image of height 1.
    layer.apply = [](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const Shape shape = b.type(x).shape;
      const std::int64_t channels = shape.back(), positions = numel(shape) / shape.front() / channels;
      const Value kept = call.inside_or(x, below_all);
      const Value row = b.emit(ops::Reshape{{shape.front(), 1, positions, channels}}, {kept});
      const Value most = b.emit(ops::Reshape{{shape.front(), channels}},
                                {b.emit(ops::MaxPool{{1, positions}, {1, 1}, {{0, 0}, {0, 0}}}, {row})});
      const std::optional<Value> lengths = call.lengths();
      if (!lengths) return most;
      const Value any = b.emit(ops::Gt{}, {*lengths, scalar_like(b, *lengths, 0.0)});
      return select(b, broadcast_along(b, any, b.type(most).shape, 0), most, scalar_like(b, most, 0.0));
    };
    return layer;
  }
};

// The mean over all dimensions but the last.
struct GlobalAvgPool {
  static Declaration<GlobalAvgPool> declaration() {
    return declare::kind<GlobalAvgPool>({.path = "global_avg_pool",
                                         .meaning = "The mean of each channel, the last dimension, over all others.",
                                         .example = "- global_avg_pool"});
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() < 2) return refuse_global_pool(in);
    Node layer = LayerInput::keeping(in.start());
    layer.output = {in.shape.back()};
    layer.image = {};
    layer.lengths.reset();
    layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
      return mean_of_positions(call.b, call.inside_or(x, 0), storage, call.lengths());
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
