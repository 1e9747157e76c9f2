// The rows of the table of keys. Each struct of a config has one row, which lists its keys and the member that each key
// is stored in. The table of keys (and thereby validation, `help`, the schema and docs/config.md) and the binding of a
// checked tree to a Spec are both derived from the rows.
//
// It is a compile-time error if a section has no row. A row of a struct that is no section is an unused function, which
// is an error as well.
//
// Rows are functions `row(Tag<T>)` in this folder; only its files include this header.
#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>

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
  std::vector<Option<T>> options;
};

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
inline bool takes_default(const Key& key) {
  return key.need == Need::optional && key.fallback.empty() && key.fallback_text.empty();
}
// The key as the table has it: with the type and the words of its member, and the default that a new value has.
template <class Member>
Key completed(Key key, const Member& initial) {
  using TakesMember = Takes<Member>;
  if (!key.type.is_set()) key.type = TakesMember::type;
  if constexpr (std::is_enum_v<Member>) {
    for (const auto& [word, meant] : words_of(Tag<Member>{})) key.words.emplace_back(word);
  }
  if constexpr (requires { TakesMember::written(initial); }) {
    if (takes_default(key)) key.fallback = TakesMember::written(initial);
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

// One of the kinds of a family.
template <class T, declare::Family F>
Option<T> choice(F T::*member, Key key) {
  key.type = Type::choice;
  return {std::move(key), Choice<F>::add_keys,
          [member](const Node& node, T& out) { Choice<F>::store(node, out.*member); }};
}

// A list of maps that declare their keys themselves, each of a kind.
template <class T, declare::HasKeys Item>
Option<T> choices(std::vector<Item> T::*member, Key key) {
  key.type = Type::choices;
  return {std::move(key), Section<Item>::add_keys, [member](const Node& node, T& out) {
            for (const Node& item : node.items) {
              if (item.valid()) declare::add_map(out.*member, stored_from(item));
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

// T itself is a choice: the kinds of a family are keys beside the other keys of T.
template <class T, declare::Family F>
Option<T> alternatives(F T::*member) {
  return {Key{.path = ""}, Choice<F>::add_keys, [member](const Node& node, T& out) {
            Choice<F>::store(node, out.*member);
            if (const Chosen chosen = Choice<F>::chosen(node); chosen.name != nullptr) {
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
  static_assert((std::same_as<Options, Option<T>> && ...), "an option of this row is for a member of another struct");
  return {{std::move(options)...}};
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

}  // namespace pmaptrain::spec
