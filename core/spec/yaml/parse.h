// Parses YAML text to a tree with places. Only this file uses yaml-cpp.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

inline constexpr std::size_t max_text_bytes = std::size_t{4} << 20;
inline constexpr int max_depth = 64;
inline constexpr int max_alias_nodes = 100'000;

// The lines of `text`, without line ends, for excerpts.
std::vector<std::string> split_lines(const std::string& text);

// Parses one document. Throws Error (usage) for errors after which parsing cannot continue: syntax errors, a second
// document, invalid UTF-8, a text that is nested too deep or too large, a self-reference, too many nodes by aliases.
// Other errors (duplicate keys, what is no map behind a merge key, tags, "${") are appended to `errors`.
//
// `source` has the lines for excerpts; `text` begins in its first line after `offset` characters (0 for a file, the
// start of the value for an option).
Node parse_yaml(const std::string& text, std::shared_ptr<const Text> source, int offset,
                std::vector<Diagnostic>& errors);

// Parses a default of the table of keys. Its nodes have no place.
Node parse_own(const std::string& text);

}  // namespace pmaptrain::spec
