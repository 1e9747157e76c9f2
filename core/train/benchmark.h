// How fast a config's steps are on this machine, beside what the machine could do at most. Nothing is written to disk.
#pragma once

#include <cstdint>

#include "core/train/setup.h"

namespace pmaptrain::train {

struct Benchmark {
  std::int64_t steps = 0;  // timed
  double median_step_seconds = 0, min_step_seconds = 0;
  double examples_per_second = 0;
  double first_step_seconds = 0;  // from the start of the process to the end of the first step
  std::int64_t peak_rss_bytes = 0;
  double flops_per_step = 0;
  int workers = 0;
  double gemm_flops_per_second = 0;  // f32 products of 1024×1024 matrices, all workers at once
  double copy_bytes_per_second = 0;  // read and written, all workers at once
  double share_of_gemm_peak() const { return flops_per_step / median_step_seconds / gemm_flops_per_second; }
};

// Times at least `steps` training steps on one batch that stays in place, in groups long enough for the clock.
Benchmark benchmark(const Setup& setup, std::int64_t steps);

}  // namespace pmaptrain::train
