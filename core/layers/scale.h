// Each channel times a learned factor (Touvron et al., "Going deeper with image transformers", 2021).
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

struct Scale {
  VectorInit scale_init = {};

  static Declaration<Scale> declaration() {
    return declare::kind<Scale>(
        {.path = "scale",
         .meaning = "x * scale, a learned factor for each channel, the last dimension. At the end of a residual branch "
                    "with small first values it is LayerScale. Parameter: scale (C).",
         .example = "- scale: {scale_init: {constant: 0.1}}"},
        field(&Scale::scale_init, layers::scale_init()));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar();
    Node layer = in.start();
    layer.parameters.push_back(in.parameter("scale", {in.shape.back()}, scale_init(ones)));
    layer.parameters.back().torch.field = "gamma";
    layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const Type type = b.type(x);
      const Value each = broadcast_along(b, call.parameters[0], type.shape, std::ssize(type.shape) - 1);
      return cast(b, mul(b, cast(b, x, storage), each), type.dtype);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
