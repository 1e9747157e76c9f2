// x @ kernel + bias along the last dimension, kernel (in, out).
#pragma once

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/product.h"

namespace pmaptrain::layers {

struct Dense {
  std::int64_t features = 1;
  bool use_bias = true;
  KernelInit kernel_init = {};
  VectorInit bias_init = {};

  static Declaration<Dense> declaration() {
    return declare::kind<Dense>(
        {.path = "dense",
         .meaning =
             "A fully connected layer: x @ kernel + bias, along the last dimension. Parameters: kernel (in, out) "
             "and bias (out).",
         .example = "- dense: 10"},
        field(&Dense::features, {.path = "features",
                                 .need = Need::required,
                                 .low = 1,
                                 .shorthand = true,
                                 .meaning = "Number of output features.",
                                 .example = "features: 10"}),
        field(&Dense::use_bias,
              {.path = "use_bias", .meaning = "Whether to add a bias.", .example = "use_bias: false"}),
        field(&Dense::kernel_init, layers::kernel_init("")), field(&Dense::bias_init, layers::bias_init("")));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar("features [..., N]");
    const std::int64_t features_in = in.shape.back();
    Node layer = in.start();
    layer.output.back() = features;
    layer.image = {};
    layer.parameters.push_back(
        LayerInput::divisible(in.product_kernel({features_in, features}, {features_in, features}, kernel_init, {1, 0}),
                              {.columns = 1, .rows = 0}));
    if (in.shape.size() == 1) layer.parameters.back().image = in.image;
    if (use_bias) {
      layer.parameters.push_back(LayerInput::divisible(in.parameter("bias", {features}, bias_init()), {.columns = 0}));
    }
    layer.divisible = {.columns = true, .rows = true};
    in.expect_used(use_bias, bias_init, "bias");
    layer.apply = [use_bias = use_bias](const LayerCall& call, Value x) {
      return product(call, x, 0, use_bias ? std::optional(call.parameters[1]) : std::nullopt);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
