// The text of data.source in a config that `init` writes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/input/inspect.h"

namespace pmaptrain::app {

// A line of YAML with a comment behind it.
std::string commented(std::string line, const std::string& comment);
// Text of the data, which may have line ends, for a comment.
std::string in_a_line(const std::string& text);
// "[a, b]"
std::string list_of(const std::vector<std::string>& names);
// "a, b, ...": the first names.
std::string first_names(const std::vector<std::string>& names, std::size_t most);
// "# Classes: a, b.": a line of comment; empty without names.
std::string names_comment(const std::string& kind, const std::vector<std::string>& names);
// The path as a config in `folder` names it. `given`: as the user wrote the path of the data.
std::string shown_path(const std::string& path, const std::filesystem::path& folder, const std::string& given);
// The line that leaves out what cannot be read.
std::string skipping();

// data.source, and what is told about it.
struct SourceText {
  std::string yaml;                   // lines, indented below `source:`
  std::vector<std::string> comments;  // at the beginning of the file
};
// Whether categories become rows of tables, by table_embedding: so many would be many inputs.
bool embeds_categories(const input::TableLayout& layout);
// `path` is text of YAML.
SourceText table_source(const input::TableLayout& layout, const std::string& path);

}  // namespace pmaptrain::app
