// The text of data.source in a config that `init` writes.
#pragma once

#include <string>
#include <vector>

#include "core/data/sources/inspect.h"

namespace pmaptrain::app {

// A line of YAML with a comment behind it.
std::string commented(std::string line, const std::string& comment);
// Text of the data, which may have line ends, for a comment.
std::string in_a_line(const std::string& text);
// "[a, b]"
std::string list_of(const std::vector<std::string>& names);
// The line that leaves out what cannot be read.
std::string skipping();

// data.source, and what is told about it.
struct SourceText {
  std::string yaml;                   // lines, indented below `source:`
  std::vector<std::string> comments;  // at the beginning of the file
};
// `path` is text of YAML.
SourceText table_source(const data::TableLayout& layout, const std::string& path);

}  // namespace pmaptrain::app
