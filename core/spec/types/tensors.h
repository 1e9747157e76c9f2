// Tensors by name: maps of names, or of their parts, to nested lists of numbers.
#pragma once

#include <map>
#include <string>

#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

// A map by dotted path. Of duplicates, the first is kept.
template <>
struct Takes<std::map<std::string, declare::Tensor>> {
  static constexpr const Type& type = Type::tensors;
  static void store(const Node& value, std::map<std::string, declare::Tensor>& out);
};

}  // namespace pmaptrain::spec
