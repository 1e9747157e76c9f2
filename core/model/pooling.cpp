// Pooling over windows of an image, separately for each channel.
#include "core/equations/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/rows.h"
#include "core/model/window.h"

namespace pmaptrain::model {
namespace {

// The checks and the geometry shared by both kinds of pooling; `make_op` makes the op from the geometry.
template <class Pool, class MakeOp>
std::optional<Node> plan_pooling(const Pool& pool, const LayerInput& in, Node layer, MakeOp make_op) {
  if (in.shape.size() != 3) {
    return in.refuse_no_image("move flatten and dense layers after the pooling");
  }
  const Window window = place_window(pool.padding, in.shape, pool.window_shape, pool.strides);
  if (window.output[0] < 1 || window.output[1] < 1) {
    return in.refuse("has window_shape " + to_string(pool.window_shape) + " with padding " + describe(pool.padding) +
                         ", which does not fit into its input " + in.shown(),
                     "use a smaller window_shape, padding: SAME, or fewer pooling layers before it");
  }
  layer.output = {window.output[0], window.output[1], in.shape[2]};
  layer.apply = [op = make_op(window)](const LayerCall& call, Value x) { return call.b.emit(op, {x}); };
  return layer;
}

}  // namespace

std::optional<Node> plan(const spec::MaxPool& pool, const LayerInput& in) {
  return plan_pooling(pool, in, in.start_with_input_dtype(), [&](const Window& window) {
    return ops::MaxPool{pool.window_shape, pool.strides, window.padding};
  });
}

std::optional<Node> plan(const spec::AvgPool& pool, const LayerInput& in) {
  return plan_pooling(pool, in, in.start(), [&](const Window& window) {
    return ops::AvgPool{pool.window_shape, pool.strides, window.padding, pool.count_include_pad};
  });
}

Value mean_of_positions(Builder& b, Value x, DType storage) {
  const Type type = b.type(x);
  ops::ReduceSum sum_of;
  double count = 1;
  for (std::size_t d = 1; d + 1 < type.shape.size(); ++d) {
    sum_of.dims.push_back(static_cast<std::int64_t>(d));
    count *= static_cast<double>(type.shape[d]);
  }
  if (type.dtype != storage) sum_of.preferred_element_type = storage;
  const Value sum = b.emit(sum_of, {x});
  return cast(b, div(b, sum, count), type.dtype);
}

// The mean over all dimensions but the last.
std::optional<Node> plan(const spec::GlobalAvgPool&, const LayerInput& in) {
  if (in.shape.size() < 2) {
    return in.refuse("takes positions with channels, such as [height,width,channels]; its input is " + in.shown(),
                     "move flatten and dense layers after the pooling, or leave it out");
  }
  Node layer = in.start();
  layer.output = {in.shape.back()};
  layer.image = {};
  layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
    return mean_of_positions(call.b, x, storage);
  };
  return layer;
}

}  // namespace pmaptrain::model
