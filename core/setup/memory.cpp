#include "core/setup/memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/runtime/backends.h"

namespace pmaptrain::setup {
namespace {

std::string what_would_fit(const MemoryEstimate& estimate, const BatchPlan& batch, const std::string& largest) {
  const bool by_batch = largest == "activations" || largest == "batches";
  MemoryBytes rest = estimate;
  rest.activations = rest.batches = 0;
  const std::size_t total = estimate.total(), fixed = rest.total();
  if (by_batch && fixed < *estimate.available) {
    const double share = static_cast<double>(*estimate.available - fixed) / static_cast<double>(total - fixed);
    const std::int64_t unit = batch.devices * batch.microbatches;
    const std::int64_t fits = static_cast<std::int64_t>(share * static_cast<double>(batch.global)) / unit * unit;
    return fits >= unit ? "data.batch_size: " + std::to_string(fits) + " would fit, or more data.microbatches"
                        : "more data.microbatches hold fewer activations at a time";
  }
  return "a smaller model would fit";
}

// The note has the rows: "it needs: parameters 1.0 MiB, batches 12.0 KiB".
[[noreturn]] void refuse(std::string message, std::string help, const std::vector<MemoryRow>& rows) {
  std::vector<std::string> needed;
  needed.reserve(rows.size());
  for (const MemoryRow& row : rows) needed.push_back(row.in_message + " " + human_bytes(row.bytes));
  throw Error(ExitStatus::resource, Diagnostic{"resource",
                                               {},
                                               "the plan needs " + std::move(message),
                                               std::move(help),
                                               {"it needs: " + join(needed, ", ")}});
}

void check_host(const MemoryEstimate& estimate) {
  const MemoryEstimate::Host& host = estimate.host;
  const std::size_t total = host.total();
  if (!host.available || total <= *host.available) return;
  const bool by_snapshot = total - host.snapshot <= *host.available;
  refuse(human_bytes(total) + " of this process's memory beside that of the " + (estimate.gpus == 1 ? "GPU" : "GPUs") +
             ", and " + human_bytes(*host.available) + " is available",
         by_snapshot ? "train.checkpoint.every: never writes one checkpoint, at the end, without a snapshot"
                     : "smaller batches and a smaller model need less",
         rows_of(host));
}

}  // namespace

std::size_t MemoryEstimate::Host::total() const { return sum_of(pinned, snapshot, passing); }

std::vector<MemoryRow> rows_of(const MemoryEstimate& m) {
  const bool on_gpus = m.gpus > 0, is_bound = m.workspace_planned_for.empty();
  // On the CPU each piece of the batch's rows has gradients of its own, which are added in the order of the pieces.
  const bool are_many = !on_gpus && m.gradients >= 2 * m.parameters && m.parameters > 0;
  std::vector<MemoryRow> rows{
      {"parameters", "parameters", "parameters", m.parameters},
      {"optimizer", "optimizer state", "optimizer state", m.optimizer},
      {"gradients", "gradients", are_many ? "gradients, of each piece of the batch" : "gradients", m.gradients},
      {"activations", "activations", "activations and other values on the way", m.activations},
      {"batch", "batches", "batches", m.batches}};
  if (m.data > 0) rows.push_back({"data", "data that stays", "data that stays", m.data});
  rows.push_back({"kernels", on_gpus ? "scratch of kernels" : "the libraries",
                  on_gpus ? "scratch of kernels" : "the libraries' code and scratch", m.kernels});
  rows.push_back({"programs", "", on_gpus ? "" : "programs and plans", m.programs});
  rows.push_back({"snapshot", "the snapshot for checkpoints", on_gpus ? "" : "snapshot for checkpoints", m.snapshot});
  if (on_gpus) {
    rows.push_back({"workspace", is_bound ? "the bound of the libraries' workspace" : "the libraries' workspace",
                    is_bound ? "workspace of libraries: the most that they may take (they are not here to plan it)"
                             : "workspace of libraries, planned for " + printable(m.workspace_planned_for),
                    m.workspace});
  }
  return rows;
}

std::vector<MemoryRow> rows_of(const MemoryEstimate::Host& host) {
  const std::string pinned = "pinned memory for batches and copies";
  const std::string passing = "values that are read or made before the first step";
  return {{"pinned", pinned, pinned, host.pinned},
          {"snapshot", "the snapshot for checkpoints", "snapshot for checkpoints", host.snapshot},
          {"passing", passing, passing, host.passing}};
}

MemoryEstimate estimate_evaluation(const MemoryNeeds& needs) {
  const auto devices = static_cast<std::size_t>(std::max(needs.gpus, 1));
  MemoryEstimate estimate;
  for (const auto purpose : purposes) estimate.*purpose = needs.*purpose / devices;
  estimate.gpus = needs.gpus;
  if (needs.gpus > 0) {
    estimate.workspace_planned_for = needs.workspace_planned_for;
    estimate.available = needs.device_memory;
    estimate.host.pinned = needs.host;
    // A machine without a GPU only plans: the run will be on another machine, whose memory is not known.
    if (!find_gpus().all.empty()) estimate.host.available = available_memory();
    return estimate;
  }
  estimate.kernels = sum_of(estimate.kernels, sum_of(library_bytes, needs.code));
  estimate.available = available_memory();
  return estimate;
}

void check_memory(const MemoryEstimate& estimate, const BatchPlan& batch, std::string help) {
  const std::size_t total = estimate.total();
  if (!estimate.available || total <= *estimate.available) return check_host(estimate);
  std::vector<MemoryRow> rows = rows_of(estimate);
  std::erase_if(rows, [](const MemoryRow& row) { return row.bytes == 0 || row.in_message.empty(); });
  const MemoryRow& largest =
      *std::max_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const std::string where = estimate.gpus == 0   ? ""
                            : estimate.gpus == 1 ? " on the GPU"
                                                 : " on each of " + counted(estimate.gpus, "GPU");
  if (help.empty()) help = what_would_fit(estimate, batch, largest.in_message);
  if (estimate.gpus > 0 && estimate.workspace_planned_for.empty() && largest.bytes == estimate.workspace) {
    help += "; where the module for GPUs and cuDNN are installed, the workspace is planned, and mostly smaller";
  }
  refuse(human_bytes(total) + " of memory" + where + ", and " + human_bytes(*estimate.available) +
             " is available; the largest item is " + largest.in_message + " with " + human_bytes(largest.bytes),
         std::move(help), rows);
}

}  // namespace pmaptrain::setup
