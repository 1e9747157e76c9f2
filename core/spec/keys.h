// The table of all config keys, derived from the rows (rows/row.h). Validation, defaults, `help`, the schema,
// docs/config.md and the resolved config are derived from it.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/types/key.h"

namespace pmaptrain::spec {

std::span<const Key> keys();
// The whole config, as a map.
const Key& root_key();
// The keys directly below, in the order of the table. Empty for a leaf.
std::vector<const Key*> children(const Key& key);
// Of entries, whatever their names are, it is the one key that all have.
const Key* child(const Key& key, std::string_view name);
const Key* find_key(std::string_view path);
// Keys whose path is `path` or ends in ".path".
std::vector<const Key*> find_ending(std::string_view path);
// The alternatives of a choice, or of a list of them.
std::vector<const Key*> alternatives(const Key& key);
// The words that a key takes as its value: true and false, the names of alternatives, never. Empty where there are
// none.
std::vector<std::string> value_words(const Key& key);
// Whether its value can be the path of a file or a folder.
bool takes_path(const Key& key);
// Whether the value at the path of a resolved config, with items of lists by index, is a path or a list of paths.
bool is_path(std::string_view path);

}  // namespace pmaptrain::spec
