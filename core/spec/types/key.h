// What core/spec knows of a key (core/declare/key.h).
#pragma once

#include <string>
#include <string_view>

#include "core/declare/key.h"
#include "core/spec/types/type.h"

namespace pmaptrain::spec {

// The type of a key that has keys below it and says nothing else.
inline Key with_type(Key key) {
  if (!key.type.is_set()) key.type = Type::map;
  return key;
}

// A description of the accepted values, for errors and help.
inline std::string takes(const Key& key) { return key.type->takes(key); }
// The noun for the items of a list of choices: "layers".
inline std::string plural(const Key& key) { return std::string(key.item) + "s"; }
// "required", "default 5", "default: the file's name", "optional", or nothing for an alternative.
std::string fallback_of(const Key& key);

// Whether `run --resume --change` may change the key, in a config where no ensemble varies it.
inline bool may_change(const Key& key) { return key.varies && key.fixed.empty(); }

// "data.batch_size" of "data" and "batch_size"; either may be empty.
std::string path_below(std::string_view path, std::string_view name);

}  // namespace pmaptrain::spec
