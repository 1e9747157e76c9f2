// The text of `--set KEY=VALUE`, of `--change KEY=VALUE` and of options that stand for a key, as nodes with places in
// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

struct Assignment {
  std::vector<Node> segments;  // scalars with places in the argument
  Node value;
};

// Parses KEY=VALUE of `option`, with quoted segments for keys that contain dots. Returns nothing after reporting an
// error.
std::optional<Assignment> parse_assignment(const std::string& argument, std::vector<Diagnostic>& errors,
                                           const std::string& option = "--set");

// The value of an option such as "--devices 8", with its place in that text.
Node option_value(const std::string& option, const std::string& value);

}  // namespace pmaptrain::spec
