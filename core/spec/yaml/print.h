// Prints values as YAML that reads back as the same, also with PyYAML.
#pragma once

#include <string>

#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// A value in one line.
std::string print_value(const Node& value);
// A text: in quotes unless it is a plain word to every reader; a name such as 010 or yes stays text.
std::string print_text(const std::string& text);

}  // namespace pmaptrain::spec
