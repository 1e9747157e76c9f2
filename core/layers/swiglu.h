// (silu(x · gate) * (x · up)) · down, without biases.
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/product.h"

namespace pmaptrain::layers {

struct Swiglu {
  std::int64_t hidden = 1;
  KernelInit kernel_init = {};

  static Declaration<Swiglu> declaration() {
    return declare::kind<Swiglu>(
        {.path = "swiglu",
         .meaning = "(silu(x @ gate) * (x @ up)) @ down, along the last dimension, which keeps its size. Parameters: "
                    "gate.kernel and up.kernel (C, hidden), and down.kernel (hidden, C).",
         .example = "- swiglu: 512"},
        field(&Swiglu::hidden, {.path = "hidden",
                                .need = Need::required,
                                .low = 1,
                                .shorthand = true,
                                .meaning = "Number of hidden features.",
                                .example = "hidden: 512"}),
        field(&Swiglu::kernel_init, layers::kernel_init()));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    const std::int64_t features = in.shape.back();
    Node layer = in.start();
    layer.image = {};
    for (const char* const field : {"gate.kernel", "up.kernel"}) {
      layer.parameters.push_back(LayerInput::divisible(
          in.product_kernel({features, hidden}, {features, hidden}, kernel_init, {1, 0}, field), {.columns = 1}));
      layer.parameters.back().image = in.image;
    }
    layer.parameters.push_back(LayerInput::divisible(
        in.product_kernel({hidden, features}, {hidden, features}, kernel_init, {1, 0}, "down.kernel"), {.rows = 0}));
    layer.divisible = {.inside = true, .units = hidden, .unit = "hidden features"};
    layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const DType compute = b.type(x).dtype;
      const Value gate = cast(b, product(call, x, 0), storage);
      const Value up = cast(b, product(call, x, 1), storage);
      const Value silu = mul(b, gate, sigmoid(b, gate));
      const Value inner = cast(b, mul(b, silu, up), compute);
      return product(call, inner, 2);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
