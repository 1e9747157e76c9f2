// The padding of convolutions and pools: SAME, VALID or two pairs of numbers.
#pragma once

#include <string>

#include "core/declare/values.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

using declare::Padding;
using declare::PaddingKind;

template <>
struct Takes<Padding> {
  static const Type type;
  static void store(const Node& value, Padding& out);
  static std::string written(const Padding& padding) { return padding.kind == PaddingKind::same ? "SAME" : "VALID"; }
};

}  // namespace pmaptrain::spec
