// Lists of layers that begin at the same value, and how what they give becomes one value.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "core/declare/kind.h"
#include "core/layers/node.h"

namespace pmaptrain::layers {

enum class Join { concat, add, multiply };
constexpr std::array<declare::Word<Join>, 3> words_of(declare::Tag<Join>) {
  return {{{"concat", Join::concat}, {"add", Join::add}, {"multiply", Join::multiply}}};
}

// The shape of one example after the join; none if these outputs cannot be joined. `concat` adds up the last
// dimensions, and the others are equal. `add` and `multiply` take equal shapes, or [C] with [..., C], along which it is
// repeated.
std::optional<Shape> joined_shape(Join join, std::span<const Node> branches);

// Whether outputs with positions have as many, each example for itself.
bool joined_lengths(std::span<const Node> branches);
inline constexpr const char* other_lengths = "joins sequences of which an example has different numbers of positions";
inline constexpr const char* other_lengths_help =
    "pad windows alike in each branch: padding: CAUSAL, or SAME without strides, keeps the number of positions";

// Makes `node` apply its children at its input and join what they give, in its type of activations. `output` is their
// joined_shape().
void join_children(Node& node, Join join, Shape output);

}  // namespace pmaptrain::layers
