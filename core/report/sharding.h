// What parallelism.fsdp keeps on each device, and what it sends, by stage.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::report {

// Of one device, in bytes.
struct ShardingStage {
  int stage = 0;  // 0: plain data parallelism
  std::size_t parameters = 0;
  std::size_t gradients = 0;  // the sums that it receives
  std::size_t state = 0;      // of the optimizer, and averages
  std::size_t gathered = 0;   // whole parameters, at most at a time, besides those above
  double sent = 0;            // in a step, over all axes
};

// The stages 0 to 3 along the axes of parallelism.fsdp, which the config must have.
std::vector<ShardingStage> stages_of_sharding(const train::Setup& setup);

// A table of these stages with a heading; empty without parallelism.fsdp. `in_one_memory`: whether all devices are
// carried by the threads of one process, so that nothing is saved.
std::string sharding_text(const train::Setup& setup, bool in_one_memory);

}  // namespace pmaptrain::report
