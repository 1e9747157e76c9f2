// What the machine lets this process have, and what a plan needs of it.
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/text.h"
#include "core/train/setup.h"

namespace pmaptrain::train {
namespace {

// The folder of this process's own cgroup (version 2), and of those above it.
std::vector<std::string> cgroups() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("0::")) continue;
    std::vector<std::string> paths;
    for (std::string path = line.substr(3); !path.empty() && path != "/"; path = path.substr(0, path.rfind('/'))) {
      paths.push_back("/sys/fs/cgroup" + path);
    }
    paths.emplace_back("/sys/fs/cgroup");
    return paths;
  }
  return {};
}

// What a cgroup's processes hold and could not give back: files that are only cached could go.
double held_memory(const std::string& group) {
  std::ifstream current(group + "/memory.current"), details(group + "/memory.stat");
  double held = 0;
  if (!(current >> held)) return 0;
  std::string key;
  for (double value = 0; details >> key >> value;) {
    if (key == "inactive_file" || key == "active_file") held -= value;
  }
  return std::max(0.0, held);
}

double read_number(const std::string& path, double otherwise) {
  std::ifstream file(path);
  double value = 0;
  return file >> value ? value : otherwise;
}

double allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  double cores = std::thread::hardware_concurrency();  // where there are more cores than the set can hold
  if (sched_getaffinity(0, sizeof set, &set) == 0) cores = CPU_COUNT(&set);
  for (const std::string& group : cgroups()) {
    std::ifstream file(group + "/cpu.max");
    double quota = 0, period = 0;
    if (file >> quota >> period && period > 0) cores = std::min(cores, quota / period);  // "max" reads as no number
  }
  return std::max(1.0, cores);
}

}  // namespace

int worker_count(const spec::MeshSpec& mesh) {
  if (mesh.workers) return *mesh.workers;
  const auto blocks = static_cast<double>(cut_into_blocks(mesh.mesh.devices()).size());
  return static_cast<int>(std::min(std::floor(allowed_cores()), blocks));
}

std::size_t available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream file("/proc/meminfo");
  std::string key;
  double kibibytes = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (words >> key >> kibibytes && key == "MemAvailable:") available = kibibytes * 1024;
  }
  for (const std::string& group : cgroups()) {
    const double limit = read_number(group + "/memory.max", std::numeric_limits<double>::infinity());
    available = std::min(available, limit - held_memory(group));
  }
  return static_cast<std::size_t>(std::max(0.0, std::min(available, 1e18)));
}

MemoryEstimate estimate_memory(const Setup& setup, const Plan& plan, int workers) {
  MemoryEstimate estimate;
  const Program& program = *plan.program;
  const auto copies = [&](int buffer) -> std::size_t {
    const Buffer& b = plan.buffers[static_cast<std::size_t>(buffer)];
    const std::int64_t count = b.home == Home::device ? program.mesh.devices() : b.home == Home::worker ? workers : 1;
    return b.slice_bytes() * static_cast<std::size_t>(count);
  };
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const std::size_t held = copies(plan.inputs[i]);
    switch (program.inputs[i].group) {
      case Group::params: estimate.parameters += held; break;
      case Group::state: estimate.optimizer += held; break;
      case Group::batch: estimate.batch += held; break;
      case Group::hyper: break;
    }
  }
  estimate.gradients = 2 * plan.blocks.size() * plan.pools.accumulators;
  const std::size_t held = plan.pools.total(workers, static_cast<std::int64_t>(plan.blocks.size()));
  const std::size_t named = estimate.parameters + estimate.optimizer + estimate.batch + estimate.gradients;
  estimate.activations = held > named ? held - named : 0;  // and what else a step computes on the way
  // Beside the plan's pools: the loader's batches, and all that evaluation has for itself.
  const data::Dataset& train = *setup.source.train;
  const std::size_t row = train.input().bytes() + train.target().bytes() + sizeof(float) + sizeof(std::int64_t);
  const auto loaders = [&](const data::BatchPlan& batch) { return 3 * row * static_cast<std::size_t>(batch.rows()); };
  std::size_t loaded = loaders(setup.batch), evaluation = 0;
  if (setup.evaluation) {
    const Plan plan_of_evaluation = make_plan(setup.evaluation);
    evaluation = plan_of_evaluation.pools.total(workers, static_cast<std::int64_t>(plan_of_evaluation.blocks.size()));
    loaded += loaders(*setup.evaluation_batch);
  }
  estimate.activations += evaluation;
  estimate.batch += loaded;
  estimate.total = held + evaluation + loaded;
  estimate.available = available_memory();
  return estimate;
}

void check_memory(const MemoryEstimate& estimate, const Setup& setup) {
  if (estimate.total <= estimate.available) return;
  const std::pair<std::string, std::size_t> items[] = {{"parameters", estimate.parameters},
                                                       {"optimizer state", estimate.optimizer},
                                                       {"gradients", estimate.gradients},
                                                       {"activations", estimate.activations},
                                                       {"batches", estimate.batch}};
  const auto& largest = *std::max_element(std::begin(items), std::end(items),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto human = [](std::size_t bytes) { return human_bytes(static_cast<double>(bytes)); };
  std::string help = "a smaller model would fit";
  const bool by_batch = largest.first == "activations" || largest.first == "batches";
  const std::size_t fixed = estimate.parameters + estimate.optimizer + estimate.gradients;
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
