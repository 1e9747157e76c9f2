// Pooling over windows of an image, separately for each channel.
#include "core/model/arithmetic.h"
#include "core/model/layers.h"
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

// The mean over all dimensions but the last.
std::optional<Node> plan(const spec::GlobalAvgPool&, const LayerInput& in) {
  if (in.shape.size() < 2) {
    return in.refuse("takes positions with channels, such as [height,width,channels]; its input is " + in.shown(),
                     "move flatten and dense layers after the pooling, or leave it out");
  }
  Node layer = in.start();
  layer.output = {in.shape.back()};
  layer.image = {};
  std::vector<std::int64_t> positions;
  for (std::int64_t d = 1; d < std::ssize(in.shape); ++d) positions.push_back(d);
  const auto count = static_cast<double>(numel(Shape(in.shape.begin(), in.shape.end() - 1)));
  layer.apply = [positions, count, storage = in.precision.storage](const LayerCall& call, Value x) {
    ops::ReduceSum sum_of{positions};
    if (call.b.type(x).dtype != storage) sum_of.preferred_element_type = storage;
    const Value sum = call.b.emit(sum_of, {x});
    return cast(call.b, div(call.b, sum, count), call.b.type(x).dtype);
  };
  return layer;
}

onnx::Value to_onnx(const spec::MaxPool& pool, const OnnxCall& call, const onnx::Value& x) {
  const Window window = place_window(pool.padding, call.node.input, pool.window_shape, pool.strides);
  return {
      call.graph.node("MaxPool", {call.graph.channels_first(x)},
                      {{"kernel_shape", pool.window_shape}, {"strides", pool.strides}, {"pads", onnx_pads(window)}}),
      true};
}

onnx::Value to_onnx(const spec::AvgPool& pool, const OnnxCall& call, const onnx::Value& x) {
  const Window window = place_window(pool.padding, call.node.input, pool.window_shape, pool.strides);
  return {call.graph.node("AveragePool", {call.graph.channels_first(x)},
                          {{"kernel_shape", pool.window_shape},
                           {"strides", pool.strides},
                           {"pads", onnx_pads(window)},
                           {"count_include_pad", std::int64_t{pool.count_include_pad}}}),
          true};
}

onnx::Value to_onnx(const spec::GlobalAvgPool&, const OnnxCall& call, const onnx::Value& x) {
  std::vector<std::int64_t> positions;
  const std::int64_t first = x.channels_first ? 2 : 1;
  for (std::int64_t d = 0; d + 1 < std::ssize(call.node.input); ++d) positions.push_back(first + d);
  return {call.graph.node("ReduceMean", {x.name}, {{"axes", positions}, {"keepdims", std::int64_t{0}}})};
}

}  // namespace pmaptrain::model
