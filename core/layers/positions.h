// Layers that add or take a position of a sequence.
#pragma once

#include <string>

#include "core/equations/arithmetic.h"
#include "core/layers/keys.h"
#include "core/layers/node.h"
#include "core/layers/rows.h"

namespace pmaptrain::layers {

// A learned position before all others (Devlin et al., "BERT", 2018; Dosovitskiy et al., "An Image is Worth 16x16
// Words", 2020).
struct ClassToken {
  static Declaration<ClassToken> declaration() {
    return declare::kind<ClassToken>(
        {.path = "class_token",
         .meaning = "Adds a learned first position to a sequence: (T, C) becomes (T + 1, C). take: first takes what "
                    "attention has made of it. Parameter: token (C), at first zeros.",
         .example = "- class_token"});
  }
  static constexpr bool looks_ahead = true;  // it is no part of a text that is continued
  static constexpr bool takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() != 2) {
      return in.refuse("takes sequences [T, C]; its input is " + in.shown(),
                       in.shape.size() == 3
                           ? "add reshape: [" + std::to_string(in.shape[0] * in.shape[1]) + ", " +
                                 std::to_string(in.shape[2]) + "] before it, which makes a sequence of the positions"
                           : "add reshape: [T, C] before it");
    }
    Node layer = in.start_with_input_dtype();
    layer.image = {};
    ++layer.output.front();
    if (in.lengths) layer.lengths = in.lengths->behind_added(1);
    layer.parameters.push_back(in.parameter("token", {in.shape.back()}, zeros));
    layer.apply = [](const LayerCall& call, Value x) {
      Builder& b = call.b;
      const Type type = b.type(x);
      // It is repeated before it is cast, so that its gradient is summed in the type of parameters.
      const Value token = b.emit(ops::Broadcast{{type.shape[0], 1, type.shape[2]}, {2}}, {call.parameters[0]});
      return b.emit(ops::Concatenate{1}, {cast(b, token, type.dtype), x});
    };
    return layer;
  }
};

struct Take {
  declare::Position position;

  static Declaration<Take> declaration() {
    return declare::kind<Take>(
        {.path = "take",
         .meaning = "One position of a sequence: (T, ...) becomes (...), as what a classifier reads behind class_token "
                    "or behind causal attention.",
         .example = "- take: first"},
        field(&Take::position, {.path = "position",
                                .need = Need::required,
                                .words = {"first", "last"},
                                .shorthand = true,
                                .meaning = "The position: first, last, or its number, counted from 0.",
                                .example = "position: last"}));
  }
  static constexpr bool looks_ahead = true, takes_lengths = true;

  std::optional<Node> plan(const LayerInput& in) const {
    if (in.shape.size() < 2) {
      return in.refuse("takes a position of sequences [T, ...]; its input is " + in.shown(),
                       "leave it out, or put it before the layers that join the positions");
    }
    const std::int64_t positions = in.shape.front();
    if (position.index >= positions && !position.is_last) {
      return in.refuse("takes position " + std::to_string(position.index) + "; its input " + in.shown() + " has " +
                           std::to_string(positions) + (positions == 1 ? " position" : " positions"),
                       "they are counted from 0: the last is " + std::to_string(positions - 1) +
                           ", which take: last names for any length");
    }
    Node layer = in.start_with_input_dtype();
    layer.image = {};
    layer.output.erase(layer.output.begin());
    layer.lengths.reset();
    layer.apply = [position = position](const LayerCall& call, Value x) {
      const std::optional<Value> lengths = call.lengths();
      if (position.is_last && lengths) return last_inside(call.b, *lengths, x);
      const Value own = call.inside_or(x, 0);
      return at_position(call.b, own, position.is_last ? call.b.type(x).shape[1] - 1 : position.index);
    };
    return layer;
  }
};

}  // namespace pmaptrain::layers
