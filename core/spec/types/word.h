// Truth values, words, and maps of names to words. Takes<T> of an enumeration is in takes.h.
#pragma once

#include <string>

#include "core/spec/spec.h"
#include "core/spec/types/takes.h"

namespace pmaptrain::spec {

template <>
struct Takes<bool> {
  static const Type type;
  static void store(const Node& value, bool& out) { out = parsed_as<bool>(value); }
  static std::string written(bool value) { return value ? "true" : "false"; }
};

// One of Key::words, or a map of names to one of Key::item_words each.
extern const Type named_words;

template <>
struct Takes<NormalizeTargets> {
  static constexpr const Type& type = named_words;
  static void store(const Node& value, NormalizeTargets& out);
};

}  // namespace pmaptrain::spec
