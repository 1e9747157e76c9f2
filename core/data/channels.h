// What the dimensions of an array of inputs are.
#pragma once

#include <array>

#include "core/declare/kind.h"

namespace pmaptrain::data {

// Where an array (N, A, B) has the channels of its examples. `none`: nowhere, an example is a picture [A, B, 1];
// `first`: it is transposed to [B, A] when it is read.
enum class Channels { automatic, last, none, first };
constexpr std::array<declare::Word<Channels>, 4> words_of(declare::Tag<Channels>) {
  return {
      {{"auto", Channels::automatic}, {"last", Channels::last}, {"none", Channels::none}, {"first", Channels::first}}};
}
}  // namespace pmaptrain::data
