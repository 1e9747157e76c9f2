// Elementwise layers, and softmax: no parameters.
#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <utility>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

// If values are stored in a narrow type, `function` is computed in the type of the parameters.
inline Node in_storage(const LayerInput& in, std::function<Value(Builder&, Value)> function) {
  Node layer = in.start();
  layer.apply = [function = std::move(function), storage = in.precision.storage](const LayerCall& call, Value x) {
    return cast(call.b, function(call.b, cast(call.b, x, storage)), call.b.type(x).dtype);
  };
  return layer;
}

// Such a function of each element.
inline Node elementwise(const LayerInput& in, std::function<Value(Builder&, Value)> function) {
  return LayerInput::keeping(in_storage(in, std::move(function)));
}

// Exact in every type.
struct Relu {
  static Declaration<Relu> declaration() {
    return declare::kind<Relu>({.path = "relu", .meaning = "max(x, 0).", .example = "- relu"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    Node layer = LayerInput::keeping(in.start_with_input_dtype());
    layer.apply = [](const LayerCall& call, Value x) { return call.b.emit(ops::Relu{}, {x}); };
    return layer;
  }
};

struct Tanh {
  static Declaration<Tanh> declaration() {
    return declare::kind<Tanh>({.path = "tanh", .meaning = "The hyperbolic tangent.", .example = "- tanh"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    return elementwise(in, [](Builder& b, Value x) { return b.emit(ops::Tanh{}, {x}); });
  }
};

enum class GeluFunction { tanh, exact };
constexpr std::array<declare::Word<GeluFunction>, 2> words_of(declare::Tag<GeluFunction>) {
  return {{{"tanh", GeluFunction::tanh}, {"none", GeluFunction::exact}}};
}

// x/2 · (1 + erf(x/√2)), or x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))).
struct Gelu {
  GeluFunction approximate = GeluFunction::tanh;

  static Declaration<Gelu> declaration() {
    return declare::kind<Gelu>(
        {.path = "gelu",
         .meaning = "The Gaussian error linear unit (GELU), x / 2 * (1 + erf(x / sqrt(2))).",
         .example = "- gelu"},
        field(&Gelu::approximate,
              {.path = "approximate",
               .meaning = "tanh: the approximation by tanh, the default of Flax. none: by erf, the default of "
                          "PyTorch.",
               .example = "approximate: none"}));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (approximate == GeluFunction::exact) {
      return elementwise(in, [](Builder& b, Value x) {
        const Value half = mul(b, x, 0.5);
        return mul(b, half, add(b, b.emit(ops::Erf{}, {mul(b, x, std::sqrt(0.5))}), 1.0));
      });
    }
    return elementwise(in, [](Builder& b, Value x) {
      const Value cube = mul(b, mul(b, x, x), x);
      const Value inner = mul(b, add(b, x, mul(b, cube, 0.044715)), std::sqrt(2.0 / std::numbers::pi));
      const Value half = mul(b, x, 0.5);
      return mul(b, half, add(b, b.emit(ops::Tanh{}, {inner}), 1.0));
    });
  }
};

struct Sigmoid {
  static Declaration<Sigmoid> declaration() {
    return declare::kind<Sigmoid>(
        {.path = "sigmoid", .meaning = "The logistic function, 1 / (1 + exp(-x)).", .example = "- sigmoid"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const { return elementwise(in, sigmoid); }
};

struct Silu {
  static Declaration<Silu> declaration() {
    return declare::kind<Silu>({.path = "silu", .meaning = "x * sigmoid(x), also called swish.", .example = "- silu"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    return elementwise(in, [](Builder& b, Value x) { return mul(b, x, sigmoid(b, x)); });
  }
};

// Along the last dimension.
struct Softmax {
  static Declaration<Softmax> declaration() {
    return declare::kind<Softmax>({.path = "softmax",
                                   .meaning = "Softmax along the last dimension. Not for use before "
                                              "softmax_cross_entropy, which expects logits.",
                                   .example = "- softmax"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.empty()) return in.refuse_scalar("features [N]");
    return in_storage(in, softmax);
  }
};

struct LeakyRelu {
  double negative_slope = 0.01;

  static Declaration<LeakyRelu> declaration() {
    return declare::kind<LeakyRelu>(
        {.path = "leaky_relu", .meaning = "x for x >= 0, else negative_slope * x.", .example = "- leaky_relu: 0.01"},
        field(&LeakyRelu::negative_slope, {.path = "negative_slope",
                                           .low = -declare::unbounded,
                                           .high = declare::unbounded,
                                           .shorthand = true,
                                           .meaning = "The slope for x < 0.",
                                           .example = "negative_slope: 0.01"}));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    return elementwise(in, [slope = negative_slope](Builder& b, Value x) { return leaky_relu(b, x, slope); });
  }
};

struct Elu {
  double alpha = 1.0;

  static Declaration<Elu> declaration() {
    return declare::kind<Elu>(
        {.path = "elu", .meaning = "x for x > 0, else alpha * (exp(x) - 1).", .example = "- elu"},
        field(&Elu::alpha, {.path = "alpha",
                            .low = -declare::unbounded,
                            .high = declare::unbounded,
                            .shorthand = true,
                            .meaning = "The scale for x < 0; the limit for x -> -infinity is -alpha.",
                            .example = "alpha: 1.0"}));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    return elementwise(in, [alpha = alpha](Builder& b, Value x) { return elu(b, x, alpha); });
  }
};

// max(x, 0) + log(1 + exp(-|x|))
struct Softplus {
  static Declaration<Softplus> declaration() {
    return declare::kind<Softplus>(
        {.path = "softplus", .meaning = "log(1 + exp(x)), computed without overflow.", .example = "- softplus"});
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const { return elementwise(in, softplus); }
};

}  // namespace pmaptrain::layers
