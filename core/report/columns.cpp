#include "core/report/columns.h"

#include <algorithm>
#include <cstddef>

#include "core/base/text.h"
#include "core/base/wrap.h"

namespace pmaptrain::report {

std::string columns(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right, int width) {
  std::vector<int> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  std::string out;
  for (const std::vector<std::size_t>& band : bands_of(widths, width)) {
    if (!out.empty()) out += "\n";
    for (const auto& row : rows) {
      std::string line;
      for (const std::size_t i : band) {
        const std::string cell = i < row.size() ? row[i] : "";
        const std::string gap(static_cast<std::size_t>(widths[i] - display_width(cell)), ' ');
        line += "  " + (i < right.size() && right[i] ? gap + cell : cell + gap);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      out += line + "\n";
    }
  }
  return out;
}

}  // namespace pmaptrain::report
