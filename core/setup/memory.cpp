#include "core/setup/memory.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/runtime/backends.h"

namespace pmaptrain::train {
namespace {

std::string what_would_fit(const MemoryEstimate& estimate, const data::BatchPlan& batch, const std::string& largest) {
  const bool by_batch = largest == "activations" || largest == "batches";
  const std::size_t fixed = sum_of(estimate.parameters, estimate.optimizer, estimate.gradients, estimate.data,
                                   estimate.kernels, estimate.programs, estimate.snapshot, estimate.workspace);
  if (by_batch && fixed < *estimate.available) {
    const double share = static_cast<double>(*estimate.available - fixed) / static_cast<double>(estimate.total - fixed);
    const std::int64_t unit = batch.devices * batch.microbatches;
    const std::int64_t fits = static_cast<std::int64_t>(share * static_cast<double>(batch.global)) / unit * unit;
    return fits >= unit ? "data.batch_size: " + std::to_string(fits) + " would fit, or more data.microbatches"
                        : "more data.microbatches hold fewer activations at a time";
  }
  return "a smaller model would fit";
}

void check_host(const MemoryEstimate& estimate) {
  const MemoryEstimate::Host& host = estimate.host;
  if (!host.available || host.total <= *host.available) return;
  const auto human = [](std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  const bool by_snapshot = host.total - host.snapshot <= *host.available;
  throw Error(
      ExitStatus::resource,
      Diagnostic{
          "resource",
          {},
          "the plan needs " + human(host.total) + " of this process's memory beside that of the " +
              (estimate.gpus == 1 ? "GPU" : "GPUs") + ", and " + human(*host.available) + " is available",
          by_snapshot ? "train.checkpoint.every: never writes one checkpoint, at the end, without a snapshot"
                      : "smaller batches and a smaller model need less",
          {"it needs: pinned memory for batches and copies " + human(host.pinned) + ", the snapshot for checkpoints " +
           human(host.snapshot) + ", values that are read or made before the first step " + human(host.passing)}});
}

}  // namespace

MemoryEstimate estimate_evaluation(const MemoryNeeds& needs) {
  const auto devices = static_cast<std::size_t>(std::max(needs.gpus, 1));
  MemoryEstimate estimate;
  estimate.parameters = needs.parameters / devices;
  estimate.optimizer = needs.state / devices;
  estimate.gradients = needs.gradients / devices;
  estimate.activations = needs.temporaries / devices;
  estimate.batch = needs.batches / devices;
  estimate.data = needs.data / devices;
  estimate.kernels = needs.kernels / devices;
  estimate.programs = needs.programs / devices;
  estimate.total = needs.total() / devices;
  estimate.gpus = needs.gpus;
  if (needs.gpus > 0) {
    estimate.workspace = needs.workspaces / devices;
    estimate.workspace_planned_for = needs.workspaces_planned_for;
    estimate.available = needs.device_memory;
    estimate.host.pinned = estimate.host.total = needs.host;
    // A machine without a GPU only plans: the run will be on another machine, whose memory is not known.
    if (!find_gpus().all.empty()) estimate.host.available = available_memory();
    return estimate;
  }
  estimate.kernels = sum_of(estimate.kernels, library_bytes);
  estimate.total = sum_of(estimate.total, library_bytes);
  estimate.available = available_memory();
  return estimate;
}

void check_memory(const MemoryEstimate& estimate, const data::BatchPlan& batch, std::string help) {
  if (!estimate.available || estimate.total <= *estimate.available) return check_host(estimate);
  const bool on_gpus = estimate.gpus > 0, is_bound = estimate.workspace_planned_for.empty();
  const std::pair<std::string, std::size_t> items[] = {
      {"parameters", estimate.parameters},
      {"optimizer state", estimate.optimizer},
      {"gradients", estimate.gradients},
      {"activations", estimate.activations},
      {"batches", estimate.batch},
      {"data that stays", estimate.data},
      {on_gpus ? "scratch of kernels" : "the libraries", estimate.kernels},
      {"the snapshot for checkpoints", estimate.snapshot},
      {is_bound ? "the bound of the libraries' workspace" : "the libraries' workspace", estimate.workspace}};
  const auto& largest = *std::max_element(std::begin(items), std::end(items),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto human = [](std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  const std::string where = !on_gpus             ? ""
                            : estimate.gpus == 1 ? " on the GPU"
                                                 : " on each of " + counted(estimate.gpus, "GPU");
  std::vector<std::string> needed;
  for (const auto& [name, bytes] : items) {
    if (bytes > 0) needed.push_back(name + " " + human(bytes));
  }
  if (help.empty()) help = what_would_fit(estimate, batch, largest.first);
  if (on_gpus && is_bound && largest.second == estimate.workspace) {
    help += "; where the module for GPUs and cuDNN are installed, the workspace is planned, and mostly smaller";
  }
  throw Error(ExitStatus::resource,
              Diagnostic{"resource",
                         {},
                         "the plan needs " + human(estimate.total) + " of memory" + where + ", and " +
                             human(*estimate.available) + " is available; the largest item is " + largest.first +
                             " with " + human(largest.second),
                         std::move(help),
                         {"it needs: " + join(needed, ", ")}});
}

}  // namespace pmaptrain::train
