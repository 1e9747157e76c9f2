// What a plan needs of what the machine lets this process have.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/train/checkpoint_writer.h"
#include "core/train/setup.h"
#include "core/train/values.h"

namespace pmaptrain::train {
namespace {

std::size_t largest_parameter(const model::Model& model) {
  std::size_t most = 0;
  for (const model::Parameter& parameter : model.parameters) {
    most = std::max(most, product_of(size_of(model.dtype), static_cast<std::size_t>(numel(parameter.shape))));
  }
  return most;
}

}  // namespace

MemoryEstimate estimate_memory(const Setup& setup, const Needs& needs, std::optional<std::int64_t> members) {
  MemoryEstimate estimate = estimate_evaluation(needs);
  if (estimate.gpus > 0) return estimate;
  // Initial values are made one at a time; what leaves the module does so in slices.
  const std::size_t largest = largest_parameter(setup.model);
  const std::size_t passing = sum_of(largest, std::min(largest, SlicedReader::most_bytes));
  estimate.activations = sum_of(estimate.activations, passing);
  const std::int64_t all = spec::members(setup.spec());
  estimate.snapshot =
      snapshot_bytes(setup) / static_cast<std::size_t>(all) * static_cast<std::size_t>(members.value_or(all));
  estimate.total = sum_of(estimate.total, passing, estimate.snapshot);
  return estimate;
}

MemoryEstimate estimate_evaluation(const Needs& needs) {
  MemoryEstimate estimate;
  estimate.parameters = needs.parameters;
  estimate.optimizer = needs.state;
  estimate.gradients = needs.gradients;
  estimate.activations = needs.temporaries;
  estimate.batch = needs.batches;
  if (needs.gpus > 0) {
    estimate.gpus = needs.gpus;
    estimate.kernels = needs.kernels;
    estimate.total = needs.total();
    estimate.available = std::nullopt;
    return estimate;
  }
  estimate.kernels = sum_of(needs.kernels, library_bytes);
  estimate.total = sum_of(needs.total(), library_bytes);
  estimate.available = available_memory();
  return estimate;
}

namespace {

std::string what_would_fit(const MemoryEstimate& estimate, const data::BatchPlan& batch, const std::string& largest) {
  const bool by_batch = largest == "activations" || largest == "batches";
  const std::size_t fixed =
      sum_of(estimate.parameters, estimate.optimizer, estimate.gradients, estimate.kernels, estimate.snapshot);
  if (by_batch && fixed < *estimate.available) {
    const double share = static_cast<double>(*estimate.available - fixed) / static_cast<double>(estimate.total - fixed);
    const std::int64_t unit = batch.devices * batch.microbatches;
    const std::int64_t fits = static_cast<std::int64_t>(share * static_cast<double>(batch.global)) / unit * unit;
    return fits >= unit ? "data.batch_size: " + std::to_string(fits) + " would fit, or more data.microbatches"
                        : "more data.microbatches hold fewer activations at a time";
  }
  return "a smaller model would fit";
}

// The most members of an ensemble that need no more than `available`; 0 where one alone needs more.
std::int64_t members_that_fit(const Setup& setup, const Backend& backend, Source source, std::size_t available) {
  std::int64_t fit = 0, too_many = source.members;
  while (fit + 1 < too_many) {
    source.members = fit + (too_many - fit) / 2;
    const bool fits = estimate_memory(setup, backend.needs(source), source.members).total <= available;
    (fits ? fit : too_many) = source.members;
  }
  return fit;
}

}  // namespace

void check_memory(const MemoryEstimate& estimate, const data::BatchPlan& batch, std::string help) {
  if (!estimate.available || estimate.total <= *estimate.available) return;
  const std::pair<std::string, std::size_t> items[] = {{"parameters", estimate.parameters},
                                                       {"optimizer state", estimate.optimizer},
                                                       {"gradients", estimate.gradients},
                                                       {"activations", estimate.activations},
                                                       {"batches", estimate.batch},
                                                       {"the kernel library", estimate.kernels},
                                                       {"the snapshot for checkpoints", estimate.snapshot}};
  const auto& largest = *std::max_element(std::begin(items), std::end(items),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto human = [](std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  if (help.empty()) help = what_would_fit(estimate, batch, largest.first);
  throw Error(ExitStatus::resource,
              Diagnostic{"resource",
                         {},
                         "the plan needs " + human(estimate.total) + " of memory, and " + human(*estimate.available) +
                             " is available; the largest item is " + largest.first + " with " + human(largest.second),
                         std::move(help),
                         {}});
}

void check_memory(const MemoryEstimate& estimate, const Setup& setup, const Backend& backend, const Source& source) {
  if (!estimate.available || estimate.total <= *estimate.available) return;
  std::string help;
  if (const auto& ensemble = setup.spec().ensemble) {
    const std::int64_t fit = members_that_fit(setup, backend, source, *estimate.available);
    if (fit > 0) {
      help = counted(fit, "member") + " would fit: mesh.axes." + ensemble->axis + ": " + std::to_string(fit) +
             ", with as many values in each list of ensemble.vary";
    }
  }
  check_memory(estimate, setup.batch, std::move(help));
}

}  // namespace pmaptrain::train
