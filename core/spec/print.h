// Prints a checked tree as YAML that reads back as the same config, also with PyYAML.
#pragma once

#include <string>

#include "core/spec/yaml/node.h"
#include "core/spec/yaml/print.h"

namespace pmaptrain::spec {

std::string print_config(const Node& config);

}  // namespace pmaptrain::spec
