#include "core/report/benchmark.h"

#include <sys/resource.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/setup/programs.h"
#include "core/setup/start.h"
#include "core/setup/values.h"
#include "core/train/resources.h"

namespace pmaptrain::report {
namespace {

// The loss of the last step of the first member.
double loss_of(Module& module, const setup::Setup& setup) {
  std::vector<Handle> means;
  for (const std::size_t mean : setup.roles.means) means.push_back(module.output(setup::train_entry, mean));
  const std::vector<std::int64_t> first{0};
  return model::finish_measures(setup.model, setup::numbers_of(module, means, first).front()).front().second;
}

}  // namespace

double measure_step_seconds(Module& module, std::size_t entry, double seconds) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t count = 1;; count *= 2) {
    const Clock::time_point begin = Clock::now();
    module.wait(module.submit(entry, 0, count));
    least = std::min(least, seconds_since(begin) / static_cast<double>(count));
    if (least * static_cast<double>(count) >= seconds) return least;
  }
}

Benchmark benchmark(const setup::Setup& setup, std::optional<std::int64_t> steps, int losses) {
  Clock::time_point begin = Clock::now();
  const auto [backend, planned, because] = setup::plan_source(setup.spec().mesh, setup::step_source(setup));
  Benchmark result;
  result.workers = planned->workers();
  result.on_gpus = backend->uses_gpus();
  train::check_memory(train::estimate_memory(setup, planned->needs()), setup, *backend, planned->source());
  result.planning_seconds = seconds_since(begin);
  begin = Clock::now();
  std::unique_ptr<Module> module = std::move(*planned).load();
  result.loading_seconds = seconds_since(begin);
  result.load_times = module->load_times();
  setup::set_initial_values(*module, setup);
  setup::fill_first_batch(*module, setup);
  module->wait(module->submit(setup::train_entry, 0));
  result.first_step_seconds = seconds_since_process_began();
  result.losses.push_back(loss_of(*module, setup));
  while (std::ssize(result.losses) < losses) {
    module->wait(module->submit(setup::train_entry, 0));
    result.losses.push_back(loss_of(*module, setup));
  }

  // Between two groups a GPU is idle until its thread has seen the end of the first group.
  const double worth_a_clock_reading = result.on_gpus ? 0.05 : 0.005;
  const double estimate = measure_step_seconds(*module, setup::train_entry, worth_a_clock_reading);
  result.steps = steps ? *steps : std::max<std::int64_t>(200, static_cast<std::int64_t>(0.2 / estimate));
  const auto groups = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(static_cast<double>(result.steps) * estimate / worth_a_clock_reading), 1, result.steps);
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < groups; ++i) {
    const std::int64_t count = result.steps * (i + 1) / groups - result.steps * i / groups;
    begin = Clock::now();
    module->wait(module->submit(setup::train_entry, 0, count));
    seconds.push_back(seconds_since(begin) / static_cast<double>(count));
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t middle = seconds.size() / 2;
  result.median_step_seconds = seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  result.min_step_seconds = seconds.front();
  result.examples_per_second =
      static_cast<double>(setup.batch.global * std::ssize(setup.members)) / result.median_step_seconds;
  result.flops_per_step = setup::cost_of(*setup.training, setup.spec()).flops;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  module.reset();  // its memory is needed
  result.peaks = measure_peaks(*backend, result.workers, product_dtype(*setup.training));
  return result;
}

}  // namespace pmaptrain::report
