// Files of JSON lines as tables: an object for each row, a column for each key.
#pragma once

#include <string>

#include "core/data/file.h"
#include "core/data/tables/table.h"

namespace pmaptrain::data {

// Whether the name of a file says that it has JSON lines: .jsonl or .ndjson, perhaps with .gz.
bool has_json_lines(const std::string& path);

// The text of such a file as a table with a header: the keys in the order in which they occur first. A null, and a key
// that an object lacks, is an empty cell; a list or an object is its JSON. Throws Error (data), with the line, for a
// line that is no object, or with `on_error: skip` only where none is.
TableText rows_of_json(const std::string& path, const Bytes& text, char delimiter, const std::string& text_key = {},
                       OnError on_error = OnError::error);

}  // namespace pmaptrain::data
