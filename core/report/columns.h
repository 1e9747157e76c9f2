// Tables as lines of text.
#pragma once

#include <string>
#include <vector>

namespace pmaptrain::report {

// Formats rows as columns, separated by two spaces and indented by two. The first column is aligned left, as are the
// others unless `right` marks them. Used by all commands. In a terminal that is narrower than the table, `width`
// columns, the columns that do not fit are below the others, behind the first one again.
std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right, int width = 0);

}  // namespace pmaptrain::report
