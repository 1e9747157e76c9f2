// Common parts of the types of values: texts, errors, lists.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spec/types/key.h"
#include "core/spec/yaml/node.h"
#include "core/spec/yaml/report.h"

namespace pmaptrain::spec {

bool has_word(const std::vector<std::string>& words, std::string_view word);
// "for example", and the first line of the key's example; empty without one.
std::string example_of(const Key& key);
// " of at least 1", " from 0 to 1", " greater than 0"; of integers where they are `whole`.
std::string range_of(const Key& key, bool whole);

// Report a value that the key does not accept, one that is close to an accepted value, and an empty one. They return an
// invalid node.
Node wrong_value(const Key& key, const Node& value, const Reporter& reporter);
Node misspelt_value(const Key& key, const Node& value, const std::string& near, const Reporter& reporter);
Node empty_value(const Key& key, const Node& value, const Reporter& reporter);

// `value` with its canonical text.
Node with_text(const Node& value, std::string text);
// The same, and stores the parsed value.
template <class T>
Node with_value(const Node& value, std::string text, T parsed) {
  Node result = with_text(value, std::move(text));
  result.parsed = std::move(parsed);
  return result;
}

// The fewest items of a list that the key takes; 0: any number.
inline std::size_t least_items(const Key& key) { return key.least_length > 0 ? key.least_length : key.length; }
// "a list of 2 integers", "a list of 1 or 2 integers": as many as the key takes.
std::string list_of(const Key& key, const std::string& item);

// Checks a list of `length` items (0: any number), each of them by `each`. One invalid item makes it invalid.
using CheckItem = std::function<Node(const Node& item)>;
Node check_list(const Key& key, const Node& value, std::size_t length, const Reporter& reporter, const CheckItem& each);
// The same of as many items as the key takes.
Node check_list(const Key& key, const Node& value, const Reporter& reporter, const CheckItem& each);
// The same for any number of items; a scalar counts as a list of one.
Node check_list_or_one(const Key& key, const Node& value, const Reporter& reporter, const CheckItem& each);

// Stores the items of a checked list.
template <class Item, class T>
void store_items(const Node& list, std::vector<T>& out) {
  out.clear();
  for (const Node& item : list.items) Item::store(item, out.emplace_back());
}

}  // namespace pmaptrain::spec
