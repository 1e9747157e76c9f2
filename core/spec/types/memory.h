// Sizes of memory: a number of MiB, GiB or TiB.
#pragma once

#include "core/spec/durations.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<MemorySize> {
  static const Type type;
  static void store(const Node& value, MemorySize& out) { out = parsed_as<MemorySize>(value); }
};

}  // namespace pmaptrain::spec
