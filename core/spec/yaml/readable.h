// What a text must be to be read as YAML.
#pragma once

#include <memory>
#include <string>

#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// Throws Error (usage) for a text that is too large, for the content of a file of another kind, and for what yaml-cpp
// would silently replace, drop or stop at: invalid UTF-8 and control characters. `source` and `offset` as for
// parse_yaml().
void check_readable(const std::string& text, const std::shared_ptr<const Text>& source, int offset);

}  // namespace pmaptrain::spec
