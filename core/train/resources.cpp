#include "core/train/resources.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/evaluate/evaluator.h"
#include "core/runtime/backends.h"
#include "core/setup/resident.h"
#include "core/setup/start.h"
#include "core/setup/values.h"
#include "core/train/checkpoint_writer.h"

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
  // Initial values are made one at a time, and values are read from the module in slices.
  const std::size_t largest = largest_parameter(setup.model);
  const std::size_t passing = sum_of(largest, std::min(largest, SlicedReader::most_bytes));
  const std::int64_t all = spec::members(setup.spec());
  const std::size_t snapshot =
      snapshot_bytes(setup) / static_cast<std::size_t>(all) * static_cast<std::size_t>(members.value_or(all));
  if (estimate.gpus > 0) {
    MemoryEstimate::Host& host = estimate.host;
    host.snapshot = snapshot;
    host.passing = std::max(passing, loading_bytes(setup));
    host.total = sum_of(host.pinned, host.snapshot, host.passing);
    return estimate;
  }
  std::size_t gathered = 0;
  for (const EvaluationPlan& plan : setup.evaluations) gathered = std::max(gathered, gathered_bytes(plan, setup.model));
  gathered = product_of(gathered, static_cast<std::size_t>(members.value_or(all)));
  estimate.activations = sum_of(estimate.activations, passing, gathered);
  estimate.snapshot = snapshot;
  estimate.total = sum_of(estimate.total, passing, gathered, estimate.snapshot);
  return estimate;
}

namespace {

// The largest number of members that need no more than `available`; 0 if a single member needs more.
std::int64_t members_that_fit(const Setup& setup, const Backend& backend, Source source, std::size_t available) {
  std::int64_t fit = 0, too_many = source.members;
  while (fit + 1 < too_many) {
    source.members = fit + (too_many - fit) / 2;
    const bool fits = estimate_memory(setup, backend.needs(source), source.members).total <= available;
    (fits ? fit : too_many) = source.members;
  }
  return fit;
}

// Whether `source` would fit with other batches. The program is planned, not estimated.
bool fits(const Setup& setup, const Backend& backend, const Source& source, std::size_t available, std::int64_t size,
          std::int64_t microbatches) {
  try {
    const Setup other = with_batches(setup, size, microbatches);
    Source loaded = run_source(other, source.private_copies);
    loaded.entries.resize(source.entries.size());
    return estimate_memory(other, backend.needs(loaded)).total <= available;
  } catch (const Error&) {
    return false;  // the data or the mesh does not divide into such batches
  }
}

// The first batch size that fits, where each is half of the previous one; 0 if none fits.
std::int64_t batch_that_fits(const Setup& setup, const Backend& backend, const Source& source, std::size_t available) {
  const std::int64_t unit = setup.batch.devices * setup.batch.microbatches;
  for (std::int64_t size = setup.batch.global / 2 / unit * unit; size > 0; size = size / 2 / unit * unit) {
    if (fits(setup, backend, source, available, size, setup.batch.microbatches)) return size;
  }
  return 0;
}

// The first number of microbatches that fits, where each is at least twice the previous one; 0 if none fits.
std::int64_t microbatches_that_fit(const Setup& setup, const Backend& backend, const Source& source,
                                   std::size_t available) {
  std::int64_t least = 2 * setup.batch.microbatches;
  for (std::int64_t count = least; count <= setup.batch.rows_per_device; ++count) {
    if (count < least || setup.batch.rows_per_device % count != 0) continue;
    if (fits(setup, backend, source, available, setup.batch.global, count)) return count;
    least = 2 * count;
  }
  return 0;
}

// "4 GPUs (--workers 4), data.batch_size: 64 or data.microbatches: 4 would fit"
std::string planned_to_fit(const Setup& setup, const Backend& backend, const Source& source, std::size_t available) {
  std::vector<std::string> ways;
  if (const std::optional<int> gpus = backend.workers_that_fit(source, available)) {
    ways.push_back(counted(*gpus, "GPU") + " (--workers " + std::to_string(*gpus) + ")");
  }
  if (const std::int64_t size = batch_that_fits(setup, backend, source, available); size > 0) {
    const bool each = std::holds_alternative<spec::BatchPerDevice>(setup.member_spec().data.batch_size);
    ways.push_back(each ? "data.batch_size_per_device: " + std::to_string(size / setup.batch.devices)
                        : "data.batch_size: " + std::to_string(size));
  }
  if (const std::int64_t count = microbatches_that_fit(setup, backend, source, available); count > 0) {
    ways.push_back("data.microbatches: " + std::to_string(count));
  }
  if (ways.empty()) return "a smaller model would fit; smaller batches and more microbatches are not enough";
  const std::string last = ways.back();
  ways.pop_back();
  return (ways.empty() ? "" : join(ways, ", ") + " or ") + last + " would fit";
}

}  // namespace

void check_memory(const MemoryEstimate& estimate, const Setup& setup, const Backend& backend, const Source& source) {
  if (!estimate.available || estimate.total <= *estimate.available) return check_memory(estimate, setup.batch);
  std::string help;
  if (const auto& ensemble = setup.spec().ensemble) {
    const std::int64_t fit = members_that_fit(setup, backend, source, *estimate.available);
    if (fit > 0) {
      help = counted(fit, "member") + " would fit: mesh.axes." + ensemble->axis + ": " + std::to_string(fit) +
             ", with as many values in each list of ensemble.vary";
    }
  }
  if (help.empty()) help = planned_to_fit(setup, backend, source, *estimate.available);
  check_memory(estimate, setup.batch, std::move(help));
}

}  // namespace pmaptrain::train
