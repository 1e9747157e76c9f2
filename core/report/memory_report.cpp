#include "core/report/memory_report.h"

#include <optional>
#include <vector>

#include "core/base/text.h"
#include "core/base/wrap.h"

namespace pmaptrain::report {
namespace {

std::string table_of(const std::vector<setup::MemoryRow>& all, std::size_t total,
                     const std::optional<std::size_t>& available) {
  std::vector<std::vector<std::string>> rows;
  for (const setup::MemoryRow& row : all) {
    if (!row.in_table.empty()) rows.push_back({row.in_table, human_bytes(row.bytes)});
  }
  rows.push_back({"total", human_bytes(total)});
  if (available) rows.push_back({"available", human_bytes(*available)});
  return in_columns(rows, {false, true});
}

}  // namespace

std::string memory_text(const setup::MemoryEstimate& m) {
  std::string out = table_of(setup::rows_of(m), m.total(), m.available);
  if (m.gpus == 0) return out;
  if (!m.available) {
    out += "  whether it fits is not known: no GPU was found; --set mesh.gpu_memory=80GiB plans for one with 80 GiB\n";
  } else if (m.total() <= *m.available) {
    out += "  it fits: " + human_bytes(*m.available - m.total()) + " stay free\n";
  }
  return out + "memory of this process beside it:\n" +
         table_of(setup::rows_of(m.host), m.host.total(), m.host.available);
}

}  // namespace pmaptrain::report
