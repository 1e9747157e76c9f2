// Keys that exclude each other: where a config gets values of both, one of the values is lost.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/types/key.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// The name by which an item of a list of choices is addressed: the given one, or the default such as conv_0; the kind
// if items have no names. `key` is that of the list; `counts` has the items before, by kind.
std::string item_name(const Node& item, const Key& key, std::map<std::string, int>& counts);
// Whether both are keys for one setting, such as data.batch_size and data.batch_size_per_device.
bool are_one_setting(const Key& a, const Key& b);

// A key in which items of lists have their index, whether it was written with names or indices.
using ItemPath = std::vector<std::string>;
ItemPath item_path(const Node& config, std::span<const Node> segments);

// Whether one key is the other or lies below it, or they belong to two alternatives of a choice, or are one setting.
bool overlap(const ItemPath& a, const ItemPath& b);
// Whether `path` is `above` or lies below it.
bool is_at_or_below(const ItemPath& path, const ItemPath& above);

}  // namespace pmaptrain::spec
