#include "core/equations/arithmetic.h"
#include "core/model/layers.h"
#include "core/model/rows.h"

namespace pmaptrain::model {

// (silu(x · gate) * (x · up)) · down, without biases.
std::optional<Node> plan(const spec::Swiglu& swiglu, const LayerInput& in) {
  if (in.shape.empty()) {
    return in.refuse("takes features [..., C]; its input is " + in.shown(),
                     "add flatten before it, which gives the shape [1]");
  }
  const std::int64_t features = in.shape.back(), hidden = swiglu.hidden;
  Node layer = in.start();
  layer.image = {};
  for (const char* const field : {"gate.kernel", "up.kernel"}) {
    layer.parameters.push_back(in.kernel({features, hidden}, swiglu.kernel_init, {features, hidden}, {1, 0}, field));
    layer.parameters.back().image = in.image;
  }
  layer.parameters.push_back(
      in.kernel({hidden, features}, swiglu.kernel_init, {hidden, features}, {1, 0}, "down.kernel"));
  layer.apply = [features, hidden, storage = in.precision.storage](const LayerCall& call, Value x) {
    Builder& b = call.b;
    const DType compute = b.type(x).dtype;
    const Value gate = cast(b, product_of_rows(b, x, call.parameters[0], {features, hidden}, {}), storage);
    const Value up = cast(b, product_of_rows(b, x, call.parameters[1], {features, hidden}, {}), storage);
    const Value silu = mul(b, gate, sigmoid(b, gate));
    const Value inner = cast(b, mul(b, silu, up), compute);
    return product_of_rows(b, inner, call.parameters[2], {hidden, features}, {});
  };
  return layer;
}

}  // namespace pmaptrain::model
