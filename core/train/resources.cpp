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
#include "core/setup/initial/orthogonal.h"
#include "core/setup/plan.h"
#include "core/setup/programs.h"
#include "core/setup/resident.h"
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

std::size_t bytes_to_draw(const model::Model& model) {
  std::size_t most = 0;
  for (const model::Parameter& parameter : model.parameters) {
    if (parameter.initializer.kind != model::InitializerKind::orthogonal) continue;
    const std::int64_t columns = parameter.initializer.columns;
    most = std::max(most, setup::orthogonal_bytes(numel(parameter.shape) / columns, columns));
  }
  return most;
}

}  // namespace

setup::MemoryEstimate estimate_memory(const setup::Setup& setup, const MemoryNeeds& needs,
                                      std::optional<std::int64_t> members) {
  setup::MemoryEstimate estimate = setup::estimate_evaluation(needs);
  // Initial values are made one at a time: for GPUs, for shards, and what a file has in another order. Values are read
  // from the module in slices.
  const std::size_t largest = largest_parameter(setup.model);
  const bool are_held =
      estimate.gpus > 0 || setup.spec().model.initial_from.has_value() || setup.member_spec().fsdp() != nullptr;
  const std::size_t passing = sum_of(
      are_held ? largest : 0, std::max(std::min(largest, setup::SlicedReader::most_bytes), bytes_to_draw(setup.model)));
  const std::int64_t all = spec::members(setup.spec());
  // Where processes have different members or shards, a checkpoint is written without a snapshot.
  const std::size_t snapshot = (needs.is_divided ? 0 : snapshot_bytes(setup)) / static_cast<std::size_t>(all) *
                               static_cast<std::size_t>(members.value_or(all));
  if (estimate.gpus > 0) {
    estimate.host.snapshot = snapshot;
    estimate.host.passing = std::max(passing, setup::loading_bytes(setup.resident_splits));
    return estimate;
  }
  std::size_t gathered = 0;
  for (const setup::EvaluationPlan& plan : setup.evaluations)
    gathered = std::max(gathered, evaluate::gathered_bytes(plan, setup.model));
  gathered = product_of(gathered, static_cast<std::size_t>(members.value_or(all)));
  estimate.activations = sum_of(estimate.activations, passing, gathered);
  estimate.snapshot = snapshot;
  return estimate;
}

namespace {

// Finds smaller runs that fit into `available` bytes, where the run of `source` does not: with fewer members, more GPUs
// or other batches. The backend plans each of them.
class SmallerRuns {
 public:
  SmallerRuns(const setup::Setup& setup, const Backend& backend, const Source& source, const Processes& processes,
              std::size_t available)
      : setup_(setup), backend_(backend), source_(source), processes_(processes), available_(available) {}

  // The largest number of members that fit, of those that divide among as many groups of processes as all members do;
  // 0 if a single one in each group does not.
  std::int64_t members() const {
    Source source = source_;
    const std::int64_t groups = MemberShare(source.members, processes_.placement, !backend_.uses_gpus()).groups();
    std::int64_t fit = 0, too_many = source.members / groups;
    while (fit + 1 < too_many) {
      const std::int64_t each = fit + (too_many - fit) / 2;
      source.members = each * groups;
      const MemoryNeeds needs = backend_.plan(source, processes_)->needs();
      (estimate_memory(setup_, needs, source.members).total() <= available_ ? fit : too_many) = each;
    }
    return fit * groups;
  }

  // "4 GPUs (--workers 4), data.batch_size: 64, data.microbatches: 4 or parallelism.fsdp: {axis: devices, stage: 1}
  // would fit"
  std::string in_words() const {
    std::vector<std::string> ways;
    if (const std::optional<int> gpus = backend_.fewest_workers_that_fit(source_, processes_, available_)) {
      const std::string whose = processes_.placement.processes > 1 ? " of each process" : "";
      ways.push_back(counted(*gpus, "GPU") + whose + " (--workers " + std::to_string(*gpus) + ")");
    }
    if (const std::int64_t size = batch(); size > 0) {
      const bool each = std::holds_alternative<spec::BatchPerDevice>(setup_.member_spec().data.batch_size);
      ways.push_back(each ? "data.batch_size_per_device: " + std::to_string(size / setup_.batch.devices)
                          : "data.batch_size: " + std::to_string(size));
    }
    if (const std::int64_t count = microbatches(); count > 0) {
      ways.push_back("data.microbatches: " + std::to_string(count));
    }
    if (const int shards = stage(); shards > 0) {
      ways.push_back("parallelism.fsdp: {axis: " + axes_of_data() + ", stage: " + std::to_string(shards) + "}");
    }
    if (ways.empty()) return "a smaller model would fit; smaller batches and more microbatches are not enough";
    return listed(ways, "or") + " would fit";
  }

 private:
  // Whether the run fits with the setup that make() returns.
  template <class F>
  bool fits(F&& make) const {
    try {
      const setup::Setup other = make();
      Source loaded = setup::run_source(other, source_.private_copies);
      loaded.entries.resize(source_.entries.size());
      return estimate_memory(other, backend_.plan(std::move(loaded), processes_)->needs()).total() <= available_;
    } catch (const Error&) {
      return false;  // the data or the mesh does not divide into such batches
    }
  }
  bool fits(std::int64_t size, std::int64_t microbatches) const {
    return fits([&] { return setup::with_batches(setup_, size, microbatches); });
  }

  // Tries smaller batches, each of at most half the size of the one before. Returns the first size with which the
  // program fits, or 0.
  std::int64_t batch() const {
    const std::int64_t unit = setup_.batch.devices * setup_.batch.microbatches;
    for (std::int64_t size = setup_.batch.global / 2 / unit * unit; size > 0; size = size / 2 / unit * unit) {
      if (fits(size, setup_.batch.microbatches)) return size;
    }
    return 0;
  }

  // Tries numbers of microbatches in ascending order, each at least twice the one before. Returns the first with which
  // the program fits, or 0.
  std::int64_t microbatches() const {
    std::int64_t least = 2 * setup_.batch.microbatches;
    for (std::int64_t count = least; count <= setup_.batch.rows_per_device; ++count) {
      if (count < least || setup_.batch.rows_per_device % count != 0) continue;
      if (fits(setup_.batch.global, count)) return count;
      least = 2 * count;
    }
    return 0;
  }

  // The first stage of sharding with which the run fits, or 0.
  int stage() const {
    if (setup_.spec().ensemble) return 0;
    const spec::Fsdp* const fsdp = setup_.member_spec().fsdp();
    const int now = fsdp != nullptr && fsdp->axes == setup_.member_spec().mesh.roles.data ? fsdp->stage : 0;
    for (int next = now + 1; next <= 3; ++next) {
      if (fits([&] { return setup::with_sharding(setup_, next); })) return next;
    }
    return 0;
  }

  // As parallelism.fsdp.axis takes them: "devices", or "[rows, columns]".
  std::string axes_of_data() const {
    const Mesh& mesh = setup_.spec().mesh.mesh;
    std::string names;
    const std::vector<int> axes = setup_.spec().mesh.roles.data.list();
    for (const int axis : axes) names += (names.empty() ? "" : ", ") + mesh.name(axis);
    return axes.size() == 1 ? names : "[" + names + "]";
  }

  const setup::Setup& setup_;
  const Backend& backend_;
  const Source& source_;
  const Processes processes_;
  const std::size_t available_;
};

}  // namespace

void check_memory(const setup::MemoryEstimate& estimate, const setup::Setup& setup, const Backend& backend,
                  const Source& source, const Processes& processes) {
  if (!estimate.available || estimate.total() <= *estimate.available) return setup::check_memory(estimate, setup.batch);
  const SmallerRuns smaller(setup, backend, source, processes, *estimate.available);
  std::string help;
  if (const auto& ensemble = setup.spec().ensemble) {
    const std::int64_t fit = smaller.members();
    if (fit > 0) {
      help = counted(fit, "member") + " would fit: mesh.axes." + ensemble->axis + ": " + std::to_string(fit) +
             ", with as many values in each list of ensemble.vary";
    }
  }
  if (help.empty()) help = smaller.in_words();
  setup::check_memory(estimate, setup.batch, std::move(help));
}

}  // namespace pmaptrain::train
