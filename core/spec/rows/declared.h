// Families of kinds, and maps of keys, that declare their keys themselves (core/declare/kind.h).
#pragma once

#include <string_view>
#include <vector>

#include "core/declare/kind.h"
#include "core/spec/types/key.h"
#include "core/spec/yaml/find.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

using Kinds = std::vector<declare::AnyKind>;

// Adds the keys of all kinds below `path`.
void add_kinds(std::string_view path, const Kinds& kinds, std::vector<Key>& out);
// The kind in the checked map `map`, if there is a valid one.
Chosen chosen_of(const Node& map, const Kinds& kinds);
// Stores the kind in the checked map `map` in `out`, a value of the family.
void store_kind(const Node& map, const Kinds& kinds, void* out);

// Adds the key of each member that is visited, and the keys below it.
declare::Visit added_below(std::string_view path, std::vector<Key>& out);
// Stores the value of each member that is visited from the checked map.
declare::Visit stored_from(const Node& map);

}  // namespace pmaptrain::spec
