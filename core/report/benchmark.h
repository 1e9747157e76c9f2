// Measures the speed of a config's steps on this machine, and the machine's peak rates. Writes nothing to disk.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/report/peaks.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::report {

struct Benchmark {
  std::int64_t steps = 0;  // number of timed steps
  double median_step_seconds = 0, min_step_seconds = 0;
  double examples_per_second = 0;  // of all members
  double first_step_seconds = 0;   // from the start of the process to the end of the first step
  double planning_seconds = 0, loading_seconds = 0;
  std::vector<LoadTime> load_times;  // parts of loading_seconds
  std::vector<double> losses;        // of the first steps, of the first member; all on the same batch
  std::int64_t peak_rss_bytes = 0;
  double flops_per_step = 0;
  int workers = 0;
  bool on_gpus = false;  // whether the workers are GPUs
  Peaks peaks;           // of all workers together
  double share_of_gemm_peak() const { return flops_per_step / median_step_seconds / peaks.gemm_flops_per_second; }
};

// The shortest time of a step of an entry on its batch in slot 0, from groups of 1, 2, 4, ... steps until a group takes
// `seconds`. Also warms up.
double measure_step_seconds(Module& module, std::size_t entry, double seconds);

// Times `steps` training steps (at least 1) on one batch, in groups that are long enough for the clock. By default as
// many steps as 0.2 seconds hold, at least 200. Before them, `losses` steps (at least 1) are run one by one, whose
// losses are read. Throws Error: data, or resource.
Benchmark benchmark(const setup::Setup& setup, std::optional<std::int64_t> steps = {}, int losses = 1);

}  // namespace pmaptrain::report
