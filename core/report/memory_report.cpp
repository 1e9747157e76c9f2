#include "core/report/memory_report.h"

#include <vector>

#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/columns.h"

namespace pmaptrain::report {
namespace {

std::string bytes_text(std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); }

}  // namespace

std::string memory_text(const train::MemoryEstimate& m) {
  // On the CPU each piece of the batch's rows has gradients of its own, which are added in the order of the pieces.
  const bool are_many = m.gpus == 0 && m.gradients >= 2 * m.parameters && m.parameters > 0;
  std::vector<std::vector<std::string>> rows{
      {"parameters", bytes_text(m.parameters)},
      {"optimizer state", bytes_text(m.optimizer)},
      {are_many ? "gradients, of each piece of the batch" : "gradients", bytes_text(m.gradients)},
      {"activations and other values on the way", bytes_text(m.activations)},
      {"batches", bytes_text(m.batch)}};
  if (m.data > 0) rows.push_back({"data that stays", bytes_text(m.data)});
  if (m.gpus > 0) {
    rows.push_back({"scratch of kernels", bytes_text(m.kernels)});
    rows.push_back({m.workspace_planned_for.empty()
                        ? "workspace of libraries: the most that they may take (they are not here to plan it)"
                        : "workspace of libraries, planned for " + printable(m.workspace_planned_for),
                    bytes_text(m.workspace)});
  } else {
    rows.push_back({"the libraries' code and scratch", bytes_text(m.kernels)});
    rows.push_back({"programs and plans", bytes_text(m.programs)});
    rows.push_back({"snapshot for checkpoints", bytes_text(m.snapshot)});
  }
  rows.push_back({"total", bytes_text(m.total)});
  if (m.available) rows.push_back({"available", bytes_text(*m.available)});
  std::string out = columns(rows, {false, true});
  if (m.gpus > 0 && !m.available) {
    out += "  whether it fits is not known: no GPU was found; --set mesh.gpu_memory=80GiB plans for one with 80 GiB\n";
  } else if (m.gpus > 0 && m.total <= *m.available) {
    out += "  it fits: " + bytes_text(*m.available - m.total) + " stay free\n";
  }
  if (m.gpus == 0) return out;
  rows = {{"pinned memory for batches and copies", bytes_text(m.host.pinned)},
          {"snapshot for checkpoints", bytes_text(m.host.snapshot)},
          {"values that are read or made before the first step", bytes_text(m.host.passing)},
          {"total", bytes_text(m.host.total)}};
  if (m.host.available) rows.push_back({"available", bytes_text(*m.host.available)});
  return out + "memory of this process beside it:\n" + columns(rows, {false, true});
}

}  // namespace pmaptrain::report
