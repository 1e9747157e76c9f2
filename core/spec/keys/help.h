// The table of keys as text.
#pragma once

#include <string>

namespace pmaptrain::spec {

// The output of `pmaptrain help KEY` for a dotted key path (optimizer.adam, data.source, layers, ...); an empty key
// gives the overview. For a terminal of `columns` columns; 0: there is none. Throws Error (usage) with the nearest
// spelling for an unknown key.
std::string help(const std::string& key, int columns = 0);

// The content of docs/config.md; a test compares it with the committed file.
std::string reference_markdown();

}  // namespace pmaptrain::spec
