// How a kind (a layer, an optimizer, ...) declares its keys, and a family its kinds.
//
// A kind is a struct of plain values with a function `static declare::Declaration<Kind> declaration()`. It reads no
// YAML: core/spec derives help, schema, checks, defaults and the way from a config to the values from declarations. A
// family is a type whose values are of one of several kinds, with a function
// `const std::vector<declare::AnyKind>& family(declare::Tag<Family>)`, which kinds_of() makes. What a declaration
// leaves out is a compile-time error.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/error.h"
#include "core/declare/key.h"
#include "core/declare/values.h"

namespace pmaptrain::declare {

// ---- members --------------------------------------------------------------------------------------------------------
struct Member;
// Called with the key of each member, and the member of the value that is being made.
using Visit = std::function<void(const Key& key, const Member& member)>;

// One kind of a family.
struct AnyKind {
  Key key;                // its path is its name
  bool is_value = false;  // the value of the kind is that of its only member, in place of a map of keys
  // Makes a value of this kind, with its defaults but for what `visit` has changed, and stores it in `out`, a value of
  // the family, unless that is null.
  std::function<void(const Visit& visit, void* out)> make;
};

// A member that is an enumerator.
struct Words {
  std::vector<std::string> all;
  std::string initial = {};  // empty: none
  std::function<void(std::string_view word)> set = {};
};
// A member that is of one of the kinds of a family. If its key has no path, the kinds are keys beside those of the
// other members, and `place` is set to that of the kind. With `number` a number may stand in the place of the map.
struct Choice {
  const std::vector<AnyKind>* kinds = nullptr;
  void* out = nullptr;
  Place* place = nullptr;
  double* number = nullptr;
};
// A member that is a word, or has words for some names, each given to `set_one`.
struct NamedWords {
  std::function<void(std::string_view word)> set;
  std::function<void(ColumnName name, std::string_view word)> set_one;
};
// A member that is a map, or a list of maps. Each map of a list has a kind, and may have other keys beside it.
struct Maps {
  bool is_list = false;
  std::function<void(const Visit& visit)> add = {};  // visits the members of a new map
};
// A member that is a map of names to values that each have one key, or a list of them.
struct Entries {
  std::function<void(std::string name, const Visit& visit)> add = {};  // visits the value of a new entry
};

struct Member {
  std::variant<double*, bool*, std::int64_t*, std::string*, std::optional<bool>*, std::optional<std::int64_t>*,
               std::optional<double>*, std::optional<std::string>*, std::vector<double>*,
               std::vector<std::vector<double>>*, ClassWeights*, std::vector<std::int64_t>*,
               std::optional<std::vector<std::int64_t>>*, Range*, Spread*, Position*, Padding*, AxisNames*,
               std::optional<ColumnName>*, std::vector<ColumnName>*, std::optional<std::vector<ColumnName>>*, FilePair*,
               std::optional<FilePair>*, FileOrArrays*, std::optional<FileOrArrays>*, std::vector<std::string>*,
               std::optional<std::vector<std::string>>*, Duration*, std::optional<Duration>*, std::vector<Duration>*,
               std::vector<Scale>*, Words, NamedWords, Choice, Maps, Entries>
      value;
};

// ---- declarations ---------------------------------------------------------------------------------------------------
template <class Struct>
struct Field {
  Key key;  // its path is its name
  std::function<Member(Struct& of)> member;
};

// The keys of a kind, or of a map of keys.
template <class Struct>
struct Declaration {
  Key key;  // of a kind; its path is its name
  std::vector<Field<Struct>> fields;
  bool is_value = false;

  void visit(Struct& of, const Visit& visit) const {
    for (const Field<Struct>& field : fields) visit(field.key, field.member(of));
  }
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

template <class T>
concept Family = requires {
  family(Tag<T>{});
};
template <class T>
concept HasKeys = requires {
  T::keys();
};
template <class T>
concept HasNamedWords = requires(T value, ColumnName name, std::string_view word) {
  value.set(word);
  value.set(name, word);
};
template <class T>
concept Enumeration = std::is_enum_v<T>;

// A word and its enumerator. `words_of(Tag<T>)`, beside an enumeration, lists all of them.
template <class T>
using Word = std::pair<std::string_view, T>;

// The word of an enumerator; and the reverse, which stores nothing and returns false for another word.
template <Enumeration E>
std::string word_of(E value) {
  for (const auto& [word, meant] : words_of(Tag<E>{})) {
    if (meant == value) return std::string(word);
  }
  return {};
}
template <Enumeration E>
bool store_word(std::string_view given, E& out) {
  for (const auto& [word, meant] : words_of(Tag<E>{})) {
    if (word != given) continue;
    out = meant;
    return true;
  }
  return false;
}

template <Enumeration E>
Words words_member(std::string initial, std::function<void(std::string_view word)> set) {
  Words made{{}, std::move(initial), std::move(set)};
  for (const auto& [word, meant] : words_of(Tag<E>{})) made.all.emplace_back(word);
  return made;
}

template <class Value>
Member member_of(Value& value) {
  static_assert(std::is_constructible_v<decltype(Member::value), Value*>,
                "no key can have a value of this type: Member lists those");
  return {&value};
}
template <Enumeration E>
Member member_of(E& value) {
  return {words_member<E>(word_of(value), [&value](std::string_view word) { store_word(word, value); })};
}
template <Enumeration E>
Member member_of(std::optional<E>& value) {
  return {words_member<E>({}, [&value](std::string_view word) {
    if (E given{}; store_word(word, given)) value = given;
  })};
}
template <HasNamedWords Value>
Member member_of(Value& value) {
  return {NamedWords{[&value](std::string_view word) { value.set(word); },
                     [&value](ColumnName name, std::string_view word) { value.set(std::move(name), word); }}};
}
template <Family F>
Member member_of(F& value) {
  return {Choice{&family(Tag<F>{}), &value}};
}
template <HasKeys Map>
const Declaration<Map>& keys_of() {
  static const Declaration<Map> declared = Map::keys();
  return declared;
}
template <HasKeys Map>
Member member_of(std::optional<Map>& value) {
  return {Maps{false, [&value](const Visit& visit) { keys_of<Map>().visit(value.emplace(), visit); }}};
}
// Appends a map. A config with errors may have one of no kind, which is left out.
template <HasKeys Map>
void add_map(std::vector<Map>& list, const Visit& visit) {
  keys_of<Map>().visit(list.emplace_back(), visit);
  if constexpr (requires { list.back().has_kind(); }) {
    if (!list.back().has_kind()) list.pop_back();
  }
}
template <HasKeys Map>
Member member_of(std::vector<Map>& value) {
  return {Maps{true, [&value](const Visit& visit) { add_map(value, visit); }}};
}

template <class Struct, class Value>
Field<Struct> field(Value Struct::*member, Key key) {
  return {std::move(key), [member](Struct& of) { return member_of(of.*member); }};
}

// The kinds of `member` are keys beside the others of its struct.
template <class Struct, Family F>
Field<Struct> alternatives(F Struct::*member, Place Struct::*place, double Struct::*number = nullptr) {
  return {Key{}, [=](Struct& of) {
            double* const instead = number != nullptr ? &(of.*number) : nullptr;
            return Member{Choice{&family(Tag<F>{}), &(of.*member), &(of.*place), instead}};
          }};
}

// `each` is the key of every entry; its path is "*".
template <class Struct, class Value>
Field<Struct> entries(std::vector<Named<Value>> Struct::*member, Key key, Key each) {
  each.path = "*";
  return {std::move(key), [member, each](Struct& of) {
            return Member{Entries{[&list = of.*member, each](std::string name, const Visit& visit) {
              visit(each, member_of(list.emplace_back(Named<Value>{std::move(name), {}}).value));
            }}};
          }};
}

// `fields` are in the order in which help and resolved configs show them.
template <class Kind, class... Fields>
Declaration<Kind> kind(Key key, Fields... fields) {
  static_assert((std::is_same_v<Fields, Field<Kind>> && ...), "a field of this declaration is of another kind");
  static_assert(sizeof...(Fields) == member_count<Kind>(), "a member of this kind has no key in its declaration");
  key.need = Need::alternative;
  return {std::move(key), {std::move(fields)...}};
}

// A kind whose value is that of its only member.
template <class Kind>
Declaration<Kind> kind_of_value(Field<Kind> field) {
  static_assert(member_count<Kind>() == 1, "a kind with a plain value must have exactly one member");
  field.key.need = Need::alternative;
  return {field.key, {field}, true};
}

// The keys of a map that is no kind.
template <class Map, class... Fields>
Declaration<Map> map(Fields... fields) {
  return {{}, {std::move(fields)...}};
}

template <class Kind>
const Declaration<Kind>& declaration_of() {
  static_assert(
      requires { Kind::declaration(); }, "this kind declares no keys: it needs a static function declaration()");
  static const Declaration<Kind> declared = Kind::declaration();
  return declared;
}

// The base of what implements the interface of a family for one kind. The interface has name(), that in the config.
template <class Interface, class Kind>
class Holds : public Interface {
 public:
  explicit Holds(Kind kind) : kind_(std::move(kind)) {}
  const Kind& kind() const { return kind_; }
  const std::string& name() const final { return declaration_of<Kind>().key.path; }

 protected:
  Kind kind_;
};

// A value of any kind of a family, by the interface that its kinds have in common. Held<Kind>, a Holds, implements
// it. Without a kind, nothing but as() may be called.
template <class Interface, template <class> class Held>
class Any {
 public:
  Any() = default;
  template <class Kind>
  requires(!std::derived_from<Kind, Any>) Any(Kind kind) : held_(std::make_shared<const Held<Kind>>(std::move(kind))) {}

  explicit operator bool() const { return held_ != nullptr; }
  const Interface* operator->() const {
    assert(held_);
    return held_.get();
  }
  // The value as one of this kind; null if it is of another.
  template <class Kind>
  const Kind* as() const {
    const auto* const held = dynamic_cast<const Held<Kind>*>(held_.get());
    return held != nullptr ? &held->kind() : nullptr;
  }

 private:
  std::shared_ptr<const Interface> held_;
};

// The list of a family.
template <class F, class... Kinds>
std::vector<AnyKind> kinds_of() {
  const auto one = []<class Kind>(const Declaration<Kind>& declared) {
    return AnyKind{declared.key, declared.is_value, [&declared](const Visit& visit, void* out) {
                     Kind made;
                     declared.visit(made, visit);
                     if (out != nullptr) *static_cast<F*>(out) = F(std::move(made));
                   }};
  };
  return {one(declaration_of<Kinds>())...};
}

}  // namespace pmaptrain::declare
