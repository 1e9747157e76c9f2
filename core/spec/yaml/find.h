// Values in a checked tree, and the places of errors about them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// The value of a key of a checked map; null if it is missing or invalid.
const Node* get(const Node* map, std::string_view key);
// The value at a dotted path; `map` itself for an empty path.
const Node* get_path(const Node* map, std::string_view path);

// Whether a segment of a dotted path is the index of an item.
bool is_index(std::string_view segment);

// The name of an entry of a map, or of a list, whose names are the indices.
std::string entry_name(const Node& entries, std::size_t index);

// The chosen alternative of a choice: its name and its options; null if there is no valid one.
struct Chosen {
  const Node* name = nullptr;
  const Node* options = nullptr;
};

// The first node set by an option: `node` itself or a node below it; null if there is none.
const Node* overridden(const Node& node);

// The place of errors about a value: the part set by an option, or else the value itself.
Place error_place(const Node& node);
Place error_place(const Chosen& chosen);
// The place for errors about the value of a key, whether it is valid or not.
Place error_place(const Node* map, std::string_view key);

}  // namespace pmaptrain::spec
