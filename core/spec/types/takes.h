// How members of a config's structs are written: the type of their value, and the way from a checked value to the
// member.
#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/declare/kind.h"
#include "core/spec/types/type.h"

namespace pmaptrain::spec {

using declare::Tag;
using declare::Word;

// How a member of type T is written. A specialisation has these static members:
//
// `const Type& type`: what a key of such a member takes, unless its row says more.
//
// `void store(const Node& value, T& out)`: stores a checked value.
//
// `std::string written(const T& value)`: the value as YAML; only if members of type T have defaults.
template <class T>
struct Takes;

template <class T>
struct Takes<std::optional<T>> {
  static constexpr const Type& type = Takes<T>::type;
  static void store(const Node& value, std::optional<T>& out) { Takes<T>::store(value, out.emplace()); }
};

template <class T>
requires std::is_enum_v<T>
struct Takes<T> {
  static constexpr const Type& type = Type::word;
  static void store(const Node& value, T& out) { declare::store_word(value.text, out); }
  static std::string written(T value) { return declare::word_of(value); }
};

}  // namespace pmaptrain::spec
