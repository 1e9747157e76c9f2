#include "core/spec/rows/declared.h"

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/spec/rows/row.h"
#include "core/spec/types/axes.h"
#include "core/spec/types/duration.h"
#include "core/spec/types/lists.h"
#include "core/spec/types/padding.h"
#include "core/spec/types/path.h"
#include "core/spec/types/text.h"
#include "core/spec/types/word.h"

namespace pmaptrain::spec {
namespace {

using declare::Entries;
using declare::Maps;
using declare::Member;

// The key as the table has it: with the type and the words of its member, and the default that a new value has.
Key described(Key key, const Member& member) {
  std::visit(
      [&]<class Value>(const Value& of) {
        if constexpr (std::is_pointer_v<Value>) {
          key = completed(std::move(key), *of);
          if (key.identifier) key.type = Type::layer_name;
          if (key.is_path) key.type = Type::path;
          // Elsewhere an optional duration is an interval, which may be `never`.
          if (std::is_same_v<Value, std::optional<Duration>*>) key.type = Type::duration;
        } else if constexpr (std::is_same_v<Value, declare::Words>) {
          key.type = Type::word;
          if (key.words.empty()) key.words = of.all;
          if (takes_default(key)) key.fallback = of.initial;
        } else if constexpr (std::is_same_v<Value, declare::NamedWords>) {
          key.type = named_words;
        } else if constexpr (std::is_same_v<Value, declare::Choice>) {
          key.type = Type::choice;
        } else if constexpr (std::is_same_v<Value, Entries>) {
          key.type = Type::entries;
        } else if (of.is_list) {
          key.type = Type::choices;
        }
      },
      member.value);
  return key;
}

void add_below(const Member& member, const Key& key, std::vector<Key>& out) {
  if (!key.like.empty()) return;
  const std::string path = key.path;
  if (const auto* choice = std::get_if<declare::Choice>(&member.value)) add_kinds(path, *choice->kinds, out);
  if (const auto* maps = std::get_if<Maps>(&member.value)) maps->add(added_below(path, out));
  if (const auto* entries = std::get_if<Entries>(&member.value)) entries->add("", added_below(path, out));
}

void store(const Node& value, const Member& member) {
  std::visit(
      [&]<class Value>(const Value& of) {
        if constexpr (std::is_pointer_v<Value>) {
          Takes<std::remove_pointer_t<Value>>::store(value, *of);
        } else if constexpr (std::is_same_v<Value, declare::Words>) {
          of.set(value.text);
        } else if constexpr (std::is_same_v<Value, declare::NamedWords>) {
          if (value.is(Node::Kind::scalar)) of.set(value.text);
          for (std::size_t i = 0; i < value.keys.size(); ++i) {
            of.set_one({value.keys[i].text, place_of(value.keys[i])}, value.items[i].text);
          }
        } else if constexpr (std::is_same_v<Value, declare::Choice>) {
          const Chosen chosen = chosen_of(value, *of.kinds);
          const bool is_number = of.number != nullptr && value.is(Node::Kind::scalar);
          store_kind(value, *of.kinds, of.out);
          if (is_number) Takes<double>::store(value, *of.number);
          if (of.place == nullptr) return;
          if (chosen.name != nullptr) *of.place = error_place(chosen);
          if (is_number) *of.place = error_place(value);
        } else if constexpr (std::is_same_v<Value, Entries>) {
          for (std::size_t i = 0; i < value.items.size(); ++i) {
            of.add(entry_name(value, i), [&](const Key&, const Member& entry) { store(value.items[i], entry); });
          }
        } else if (of.is_list) {
          for (const Node& item : value.items) {
            if (item.valid()) of.add(stored_from(item));
          }
        } else if (value.is(Node::Kind::map)) {
          of.add(stored_from(value));
        }
      },
      member.value);
}

}  // namespace

declare::Visit added_below(std::string_view path, std::vector<Key>& out) {
  return [path = std::string(path), &out](const Key& key, const Member& member) {
    Key own = with_type(described(key, member));
    own.path = path_below(path, key.path);
    if (!key.path.empty()) out.push_back(own);
    add_below(member, own, out);
  };
}

declare::Visit stored_from(const Node& map) {
  return [&map](const Key& key, const Member& member) {
    if (const Node* const value = get_path(&map, key.path)) store(*value, member);
  };
}

void add_kinds(std::string_view path, const Kinds& kinds, std::vector<Key>& out) {
  for (const declare::AnyKind& kind : kinds) {
    const declare::Visit below = added_below(path, out);
    if (kind.is_value) {
      kind.make([&](const Key&, const Member& member) { below(kind.key, member); }, nullptr);
    } else {
      Key own = with_type(kind.key);
      own.path = path_below(path, own.path);
      out.push_back(own);
      kind.make(added_below(own.path, out), nullptr);
    }
  }
}

Chosen chosen_of(const Node& map, const Kinds& kinds) {
  Chosen found;
  if (!map.is(Node::Kind::map)) return found;
  for (const declare::AnyKind& kind : kinds) {
    for (std::size_t i = 0; i < map.keys.size(); ++i) {
      if (map.keys[i].text == kind.key.path && map.items[i].valid()) found = {&map.keys[i], &map.items[i]};
    }
  }
  return found;
}

void store_kind(const Node& map, const Kinds& kinds, void* out) {
  const Chosen taken = chosen_of(map, kinds);
  if (taken.name == nullptr) return;
  for (const declare::AnyKind& kind : kinds) {
    if (taken.name->text != kind.key.path) continue;
    if (kind.is_value) {
      kind.make([&](const Key&, const Member& member) { store(*taken.options, member); }, out);
    } else {
      kind.make(stored_from(*taken.options), out);
    }
  }
}

}  // namespace pmaptrain::spec
