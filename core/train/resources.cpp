// What a plan needs of what the machine lets this process have.
#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/machine.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/train/setup.h"

namespace pmaptrain::train {
namespace {

// The batches that a loader holds.
std::size_t loader_bytes(const Setup& setup, const data::BatchPlan& batch) {
  const data::Dataset& train = *setup.source.train;
  const std::size_t row = train.input().bytes() + train.target().bytes() + sizeof(float) + sizeof(std::int64_t);
  return product_of(3 * row, static_cast<std::size_t>(batch.rows()));
}

std::size_t largest_parameter(const model::Model& model) {
  std::size_t most = 0;
  for (const model::Parameter& parameter : model.parameters) {
    most = std::max(most, product_of(size_of(model.dtype), static_cast<std::size_t>(numel(parameter.shape))));
  }
  return most;
}

MemoryEstimate with_kernels(MemoryEstimate estimate, std::size_t total) {
  estimate.kernels = kernel_bytes;
  estimate.total = sum_of(total, kernel_bytes);
  estimate.available = available_memory();
  return estimate;
}

}  // namespace

int worker_count(const spec::MeshSpec& mesh) {
  if (mesh.workers) return *mesh.workers;
  const auto blocks = static_cast<double>(cut_into_blocks(mesh.mesh.devices()).size());
  return static_cast<int>(std::min(std::floor(allowed_cores()), blocks));
}

MemoryEstimate estimate_memory(const Setup& setup, const Plan& plan, int workers) {
  MemoryEstimate estimate;
  const Program& program = *plan.program;
  const auto copies = [&](int buffer) -> std::size_t {
    const Buffer& b = plan.buffers[static_cast<std::size_t>(buffer)];
    const std::int64_t count = b.home == Home::device ? program.mesh.devices() : b.home == Home::worker ? workers : 1;
    return product_of(b.slice_bytes(), static_cast<std::size_t>(count));
  };
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const std::size_t held = copies(plan.inputs[i]);
    switch (program.inputs[i].group) {
      case Group::params: estimate.parameters = sum_of(estimate.parameters, held); break;
      case Group::state: estimate.optimizer = sum_of(estimate.optimizer, held); break;
      case Group::batch: estimate.batch = sum_of(estimate.batch, held); break;
      case Group::hyper: break;
    }
  }
  estimate.gradients = product_of(2 * plan.blocks.size(), plan.pools.accumulators);
  const std::size_t held = plan.pools.total(workers, static_cast<std::int64_t>(plan.blocks.size()));
  const std::size_t named = sum_of(estimate.parameters, estimate.optimizer, estimate.batch, estimate.gradients);
  estimate.activations = held > named ? held - named : 0;  // and what else a step computes on the way
  // Beside the plan's pools: the loader's batches, and all that evaluation has for itself.
  const std::size_t loaded = loader_bytes(setup, setup.batch);
  estimate.batch = sum_of(estimate.batch, loaded);
  std::size_t later = loaded;
  if (setup.evaluation) {
    const MemoryEstimate evaluation =
        estimate_evaluation(setup, make_plan(setup.evaluation), *setup.evaluation_batch, workers);
    estimate.activations = sum_of(estimate.activations, evaluation.activations);
    estimate.batch = sum_of(estimate.batch, evaluation.batch);
    later = sum_of(later, evaluation.activations, evaluation.batch);
  }
  // Before these are there, initial values are made, one parameter at a time.
  const std::size_t initial = largest_parameter(setup.model);
  if (initial > later) {
    estimate.activations = sum_of(estimate.activations, initial - later);
    later = initial;
  }
  return with_kernels(estimate, sum_of(held, later));
}

MemoryEstimate estimate_evaluation(const Setup& setup, const Plan& plan, const data::BatchPlan& batch, int workers) {
  MemoryEstimate estimate;
  estimate.activations = plan.pools.total(workers, static_cast<std::int64_t>(plan.blocks.size()));
  estimate.batch = loader_bytes(setup, batch);
  return with_kernels(estimate, sum_of(estimate.activations, estimate.batch));
}

void check_memory(const MemoryEstimate& estimate, const Setup& setup) {
  if (estimate.total <= estimate.available) return;
  const std::pair<std::string, std::size_t> items[] = {
      {"parameters", estimate.parameters}, {"optimizer state", estimate.optimizer},
      {"gradients", estimate.gradients},   {"activations", estimate.activations},
      {"batches", estimate.batch},         {"the kernel library", estimate.kernels}};
  const auto& largest = *std::max_element(std::begin(items), std::end(items),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto human = [](std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  std::string help = "a smaller model would fit";
  const bool by_batch = largest.first == "activations" || largest.first == "batches";
  const std::size_t fixed = sum_of(estimate.parameters, estimate.optimizer, estimate.gradients, estimate.kernels);
  if (by_batch && fixed < estimate.available) {
    const double share = static_cast<double>(estimate.available - fixed) / static_cast<double>(estimate.total - fixed);
    const std::int64_t unit = setup.batch.devices * setup.batch.microbatches;
    const std::int64_t fits = static_cast<std::int64_t>(share * static_cast<double>(setup.batch.global)) / unit * unit;
    help = fits >= unit ? "data.batch_size: " + std::to_string(fits) + " would fit, or more data.microbatches"
                        : "more data.microbatches hold fewer activations at a time";
  }
  throw Error(ExitStatus::resource,
              Diagnostic{"resource",
                         {},
                         "the plan needs " + human(estimate.total) + " of memory, and " + human(estimate.available) +
                             " is available; the largest item is " + largest.first + " with " + human(largest.second),
                         help,
                         {}});
}

}  // namespace pmaptrain::train
