// How a kind (an optimizer, ...) declares its keys, and a family its kinds.
//
// A kind is a struct of plain values with a function `static declare::Declaration<Kind> declaration()`. It reads no
// YAML: core/spec derives help, schema, checks, defaults and the way from a config to the values from declarations. A
// family is a list of kinds behind one interface, made by kinds_of(). What a declaration leaves out is a compile-time
// error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/declare/key.h"

namespace pmaptrain::declare {

// A member of a kind, by the type of its value.
using Member = std::variant<double*, bool*, std::int64_t*>;

template <class Kind>
struct Field {
  std::variant<double Kind::*, bool Kind::*, std::int64_t Kind::*> member;
  Key key;  // its path is its name
};

template <class Kind>
struct Declaration {
  Key key;  // its path is the name of the kind
  std::vector<Field<Kind>> fields;
};

struct Anything {
  template <class T>
  operator T() const;
};

// The number of members of an aggregate.
template <class T, class... Initialisers>
consteval std::size_t member_count() {
  if constexpr (requires { T{Initialisers{}..., Anything{}}; }) {
    return member_count<T, Initialisers..., Anything>();
  } else {
    return sizeof...(Initialisers);
  }
}

template <class Kind, class Value>
Field<Kind> field(Value Kind::*member, Key key) {
  static_assert(std::is_constructible_v<Member, Value*>, "no key can have a value of this type: Member lists those");
  return {member, std::move(key)};
}

// `fields` are in the order in which help and resolved configs show them.
template <class Kind, class... Fields>
Declaration<Kind> kind(Key key, Fields... fields) {
  static_assert((std::is_same_v<Fields, Field<Kind>> && ...), "a field of this declaration is of another kind");
  static_assert(sizeof...(Fields) == member_count<Kind>(), "a member of this kind has no key in its declaration");
  key.need = Need::alternative;
  return {std::move(key), {std::move(fields)...}};
}

template <class Kind>
const Declaration<Kind>& declaration_of() {
  static_assert(
      requires { Kind::declaration(); }, "this kind declares no keys: it needs a static function declaration()");
  static const Declaration<Kind> declared = Kind::declaration();
  return declared;
}

// Called with the key of each member, and the member of the value that is being made.
using Visit = std::function<void(const Key& key, Member member)>;

// One kind of a family whose values are of type `Value`.
template <class Value>
struct KindOf {
  Key key;
  // A value of this kind, with its defaults but for what `visit` has changed.
  std::function<Value(const Visit& visit)> make;
};

// The list of a family.
template <class Value, class... Kinds>
std::vector<KindOf<Value>> kinds_of() {
  const auto one = []<class Kind>(const Declaration<Kind>& declared) {
    return KindOf<Value>{declared.key, [&declared](const Visit& visit) {
                           Kind made;
                           for (const Field<Kind>& field : declared.fields) {
                             std::visit([&](auto member) { visit(field.key, &(made.*member)); }, field.member);
                           }
                           return Value(std::move(made));
                         }};
  };
  return {one(declaration_of<Kinds>())...};
}

}  // namespace pmaptrain::declare
