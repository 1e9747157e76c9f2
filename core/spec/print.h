// Prints a checked tree as YAML that reads back as the same config, also with PyYAML.
#pragma once

#include <string>

#include "core/spec/node.h"

namespace pmaptrain::spec {

std::string print_config(const Node& config);
// A value in one line.
std::string print_value(const Node& value);
// A text: in quotes unless it is a plain word to every reader; a name such as 010 or yes stays text.
std::string print_text(const std::string& text);

}  // namespace pmaptrain::spec
