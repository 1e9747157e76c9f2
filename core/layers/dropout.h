// Inverted dropout: the layer, and what layers that have it inside need.
#pragma once

#include <cassert>
#include <string>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/equations/division.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

inline std::string dropout_number(const Node& layer, const char* what) { return "dropout/" + layer.name + "/" + what; }

// Makes the layer draw, with the numbers that drop() reads. A rate of 0 does nothing.
inline void add_dropout(Node& layer, double rate, DType storage) {
  layer.draws = rate > 0.0;
  if (!layer.draws) return;
  layer.numbers = {{dropout_number(layer, "rate"), rate, DType::f32},
                   {dropout_number(layer, "scale"), 1.0 / (1.0 - rate), storage}};
}

// Each element of x [B, ...] is kept with probability 1 - rate and multiplied by `scale`, or becomes 0.
//
// The random bits of an example depend only on the key and on the position of the example in the sample stream, which
// differs in every epoch. They do not depend on the mesh or on microbatches. Where devices along `divided` have some of
// the features each, the last dimension, they draw what one device would draw.
inline Value dropped(Builder& b, Value x, Value key, Value rows, Value rate, Value scale, AxisSet divided = {}) {
  const Shape shape = b.type(x).shape;
  ops::RandomUniform draw{Shape(shape.begin() + 1, shape.end())};
  std::vector<Value> operands{key, rows};
  if (!divided.empty()) {
    std::int64_t stride = 1;
    for (std::size_t i = draw.shape.size(); i-- > 0;) {
      draw.strides.insert(draw.strides.begin(), stride);
      stride *= i + 1 == draw.shape.size() ? draw.shape[i] * b.mesh().group_size(divided) : draw.shape[i];
    }
    operands.push_back(offset_along(b, divided, draw.shape.back()));
  }
  const Value uniform = b.emit(draw, operands);
  const Value keep = b.emit(ops::Ge{}, {uniform, rate});
  const Value scaled = mul(b, x, scale);
  return select(b, keep, scaled, scalar_like(b, scaled, 0.0));
}

// In training, if the layer draws: elements of x [B, ...] are dropped, and the others divided by 1 - rate. x has the
// type of storage. Else x.
inline Value drop(const LayerCall& call, Value x) {
  if (!call.training || !call.node.draws) return x;
  assert(call.key && call.rows);
  return dropped(call.b, x, *call.key, *call.rows, call.numbers[dropout_number(call.node, "rate")],
                 call.numbers[dropout_number(call.node, "scale")], call.input_axes());
}

// What an op that drops by itself takes: the key of the layer, the rows of the batch, the rate, and the factor of what
// is kept, in the type `scale`. The layer draws.
inline std::vector<Value> dropout_operands(const LayerCall& call, DType scale) {
  assert(call.key && call.rows);
  return {*call.key, *call.rows, call.numbers[dropout_number(call.node, "rate")],
          cast(call.b, call.numbers[dropout_number(call.node, "scale")], scale)};
}

// Of every rate of dropout.
inline Key dropout_rate(std::string_view name, Need need, std::string_view meaning, std::string_view example) {
  return {.path = std::string(name),
          .need = need,
          .high = 1,
          .open_high = true,
          .varies = true,
          .structural = declare::Structural{0.0, "dropout of rate 0 does nothing"},
          .meaning = meaning,
          .example = example};
}

// Evaluation is the identity.
struct Dropout {
  double rate = 0.5;

  static Declaration<Dropout> declaration() {
    Key of_rate = dropout_rate("rate", Need::required, "The probability that a value is set to zero.", "rate: 0.5");
    of_rate.shorthand = true;
    return declare::kind<Dropout>({.path = "dropout",
                                   .meaning = "In training, sets each value to zero with probability rate and divides "
                                              "the others by 1 - rate. In evaluation, the identity.",
                                   .example = "- dropout: 0.5"},
                                  field(&Dropout::rate, of_rate));
  }
  static constexpr bool looks_ahead = false;

  std::optional<Node> plan(const LayerInput& in) const {
    Node layer = LayerInput::keeping(in.start());
    add_dropout(layer, rate, in.precision.storage);
    layer.apply = [storage = in.precision.storage](const LayerCall& call, Value x) {
      if (!call.training || !call.node.draws) return x;
      const DType dtype = call.b.type(x).dtype;
      return cast(call.b, drop(call, cast(call.b, x, storage)), dtype);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
