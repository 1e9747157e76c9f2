// The rows of the table of keys. Each struct of a config has one row, which lists its keys and the member that each key
// is stored in. The table of keys (and thereby validation, `help`, the schema and docs/config.md) and the binding of a
// checked tree to a Spec are both derived from the rows.
//
// It is a compile-time error if an alternative of a choice has no row, or if a member of an alternative has no option
// in its row. A row of a struct that is no alternative is an unused function, which is an error as well.
//
// Rows are functions `row(Tag<T>)` in this folder; only its files include this header.
#pragma once

#include <array>
#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <variant>

#include "core/base/text.h"
#include "core/declare/kind.h"
#include "core/spec/rows/sections.h"
#include "core/spec/spec.h"
#include "core/spec/types/key.h"
#include "core/spec/types/number.h"
#include "core/spec/types/takes.h"
#include "core/spec/types/text.h"
#include "core/spec/types/word.h"
#include "core/spec/yaml/find.h"

namespace pmaptrain::spec {

// One key of T. `add_below` adds the keys below it to the table, and `store` stores its checked value in a T. Either
// may be empty; core/spec/bind stores values that depend on other keys.
template <class T>
struct Option {
  Key key;  // its path is relative to that of T
  std::function<void(std::string_view path, std::vector<Key>& out)> add_below = {};
  std::function<void(const Node& value, T& out)> store = {};
};

template <class T>
struct Row {
  Key key;  // of an alternative; its path is its name
  std::vector<Option<T>> options;
  bool is_value = false;  // the value of the alternative is the value of its only member
};

// ---- words of several rows ------------------------------------------------------------------------------------------
constexpr std::array<Word<Mode>, 2> words_of(Tag<Mode>) { return {{{"min", Mode::min}, {"max", Mode::max}}}; }
constexpr std::array<Word<PrecisionPolicy>, 2> words_of(Tag<PrecisionPolicy>) {
  return {{{"float32", PrecisionPolicy::float32}, {"mixed_bfloat16", PrecisionPolicy::mixed_bfloat16}}};
}

// ---- keys of several rows -------------------------------------------------------------------------------------------
// What selects on evaluations has these two.
inline Key metric_key(std::string_view example) {
  return {.path = "metric",
          .meaning = "The measure of the evaluation that decides: loss, or the name of one of the metrics.",
          .example = example};
}
inline Key mode_key(std::string_view example) {
  return {.path = "mode",
          .words = {"min", "max"},
          .meaning = "Whether a smaller (min) or a larger (max) value is better.",
          .example = example,
          .fallback_text = default_mode_text()};
}

// ---- options of a row ----------------------------------------------------------------------------------------------
// The key as the table has it: with the type and the words of its member, and the default that a new value has.
template <class Member>
Key completed(Key key, const Member& initial) {
  using TakesMember = Takes<Member>;
  if (!key.type.is_set()) key.type = TakesMember::type;
  if constexpr (std::is_enum_v<Member>) {
    for (const auto& [word, meant] : words_of(Tag<Member>{})) key.words.emplace_back(word);
  }
  if constexpr (requires { TakesMember::written(initial); }) {
    const bool has_default = key.need == Need::optional && key.fallback.empty() && key.fallback_text.empty();
    if (has_default) key.fallback = TakesMember::written(initial);
  }
  return key;
}

template <class T, class Member>
Option<T> option(Member T::*member, Key key) {
  static_assert(
      requires { sizeof(Takes<Member>); },
      "members of this type have no Takes: include its header of core/spec/types, or write it there");
  return {completed(std::move(key), T{}.*member), {}, [member](const Node& node, T& out) {
            Takes<Member>::store(node, out.*member);
          }};
}

// A map with the keys of `Member`.
template <class T, class Member>
Option<T> section(Member T::*member, Key key) {
  return {std::move(key), Section<Member>::add_keys,
          [member](const Node& node, T& out) { Section<Member>::store(node, out.*member); }};
}
template <class T, class Member>
Option<T> section(std::optional<Member> T::*member, Key key) {
  return {std::move(key), Section<Member>::add_keys,
          [member](const Node& node, T& out) { Section<Member>::store(node, (out.*member).emplace()); }};
}

// One of the alternatives of a std::variant.
template <class T, class Variant>
Option<T> choice(Variant T::*member, Key key) {
  key.type = Type::choice;
  return {std::move(key), Choice<Variant>::add_keys,
          [member](const Node& node, T& out) { Choice<Variant>::store(node, out.*member); }};
}

// The same, or no value.
template <class T, class Variant>
Option<T> choice(std::optional<Variant> T::*member, Key key) {
  key.type = Type::choice;
  const bool described_elsewhere = !key.like.empty();
  return {std::move(key), described_elsewhere ? decltype(Option<T>::add_below)() : Choice<Variant>::add_keys,
          [member](const Node& node, T& out) { Choice<Variant>::store(node, (out.*member).emplace()); }};
}

// A list of choices, each with the other keys of `Item` beside it.
template <class T, class Item>
Option<T> choices(std::vector<Item> T::*member, Key key) {
  key.type = Type::choices;
  const bool described_elsewhere = !key.like.empty();
  return {std::move(key), described_elsewhere ? decltype(Option<T>::add_below)() : Section<Item>::add_keys,
          [member](const Node& node, T& out) {
            for (const Node& item : node.items) {
              if (item.valid()) Section<Item>::store(item, (out.*member).emplace_back());
            }
          }};
}

// A list of maps, each with the keys of `Item`.
template <class T, class Item>
Option<T> sections(std::vector<Item> T::*member, Key key) {
  key.type = Type::maps;
  return {std::move(key), Section<Item>::add_keys, [member](const Node& node, T& out) {
            for (const Node& item : node.items) {
              if (item.valid()) Section<Item>::store(item, (out.*member).emplace_back());
            }
          }};
}

// T itself is a choice: its alternatives are keys beside the other keys of T.
template <class T, class Variant>
Option<T> alternatives(Variant T::*member) {
  return {Key{.path = ""}, Choice<Variant>::add_keys, [member](const Node& node, T& out) {
            Choice<Variant>::store(node, out.*member);
            if (const Chosen chosen = Choice<Variant>::chosen(node); chosen.name != nullptr) {
              out.place = error_place(chosen);
            }
          }};
}

// A key that core/spec/bind stores, because its value depends on other keys.
template <class T>
Option<T> by_hand(Key key) {
  return {std::move(key)};
}

// ---- rows ----------------------------------------------------------------------------------------------------------
// The row of a struct that is a map with these keys.
template <class T, class... Options>
Row<T> keys_of(Options... options) {
  return {Key{}, {std::move(options)...}};
}

// The row of an alternative of a choice: its key, and one option for each member.
template <class T, class... Options>
Row<T> alternative(Key key, Options... options) {
  static_assert((std::same_as<Options, Option<T>> && ...), "an option of this row is for a member of another struct");
  static_assert(sizeof...(Options) == declare::member_count<T>(),
                "a member of this alternative has no option in its row");
  key.need = Need::alternative;
  return {std::move(key), {std::move(options)...}};
}

// The row of an alternative whose value is the value of its only member, in place of a map of options.
template <class T>
Row<T> alternative_of(Option<T> value) {
  static_assert(declare::member_count<T>() == 1, "an alternative with a plain value must have exactly one member");
  value.key.need = Need::alternative;
  return {value.key, {value}, true};
}

template <class T>
const auto& row_of() {
  static_assert(
      requires { row(Tag<T>{}); },
      "this struct has no row: write `row(Tag<T>)` in core/spec/rows/*.cpp, as its neighbours have");
  static const auto result = row(Tag<T>{});
  return result;
}

// ---- from rows: keys and values ------------------------------------------------------------------------------------
template <class T>
void add_options(const Row<T>& row, std::string_view path, std::vector<Key>& out) {
  for (const Option<T>& option : row.options) {
    const std::string own = path_below(path, option.key.path);
    if (!option.key.path.empty()) {
      out.push_back(with_type(option.key));
      out.back().path = own;
    }
    if (option.add_below) option.add_below(own, out);
  }
}

template <class T>
void store_options(const Row<T>& row, const Node& map, T& out) {
  for (const Option<T>& option : row.options) {
    const Node* value = get_path(&map, option.key.path);
    if (value != nullptr && option.store) option.store(*value, out);
  }
}

template <class T>
void Section<T>::add_keys(std::string_view path, std::vector<Key>& out) {
  add_options(row_of<T>(), path, out);
}

template <class T>
void Section<T>::store(const Node& map, T& out) {
  store_options(row_of<T>(), map, out);
}

template <class... Alternatives>
void Choice<std::variant<Alternatives...>>::add_keys(std::string_view path, std::vector<Key>& out) {
  const auto add = [&](const auto& row) {
    const std::string own = path_below(path, row.key.path);
    out.push_back(with_type(row.key));
    out.back().path = own;
    if (!row.is_value) add_options(row, own, out);
  };
  (add(row_of<Alternatives>()), ...);
}

template <class... Alternatives>
Chosen Choice<std::variant<Alternatives...>>::chosen(const Node& map) {
  Chosen found;
  (look_for_kind(map, row_of<Alternatives>().key, found), ...);
  return found;
}

template <class... Alternatives>
void Choice<std::variant<Alternatives...>>::store(const Node& map, std::variant<Alternatives...>& out) {
  const Chosen taken = chosen(map);
  if (taken.name == nullptr) return;
  const auto store_if_taken = [&]<class T>(const Row<T>& row) {
    if (taken.name->text != row.key.path) return;
    T& value = out.template emplace<T>();
    if (row.is_value) {
      row.options.front().store(*taken.options, value);
    } else {
      store_options(row, *taken.options, value);
    }
  };
  (store_if_taken(row_of<Alternatives>()), ...);
}

template <class... Alternatives>
std::string Choice<std::variant<Alternatives...>>::name(const std::variant<Alternatives...>& value) {
  return std::visit([]<class T>(const T&) { return row_of<T>().key.path; }, value);
}

}  // namespace pmaptrain::spec
