// What parallelism.fsdp keeps on each device, and what it sends, by stage.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::report {

// Of one device, in bytes, but for `process`.
struct ShardingStage {
  int stage = 0;  // 0: plain data parallelism
  std::size_t parameters = 0;
  std::size_t gradients = 0;  // the sums that it receives
  std::size_t state = 0;      // of the optimizer, and averages
  std::size_t gathered = 0;   // whole parameters, at most at a time, besides those above
  double sent = 0;            // in a step, over all axes
  // The memory of process 0 in all, as planned: of several processes without GPUs, and not of an ensemble.
  std::optional<std::size_t> process = {};
};

// What a device has of the sums of gradients, and of whole parameters at a time, besides what it stores. In bytes.
struct ShardedSums {
  std::size_t gradients = 0, gathered = 0;
};
ShardedSums sharded_sums(const model::Model& model, const step::Optimizer& optimizer, const model::Sharding& sharding,
                         const spec::MeshSpec& mesh);

// The stages 0 to 3 along the axes of parallelism.fsdp, which the config must have, carried by so many processes.
std::vector<ShardingStage> stages_of_sharding(const setup::Setup& setup, int processes = 1);

// A table of these stages with a heading; empty without parallelism.fsdp. Without GPUs one process saves nothing.
std::string sharding_text(const setup::Setup& setup, int processes, bool on_gpus);

}  // namespace pmaptrain::report
