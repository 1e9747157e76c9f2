// The processes that start the runs of a sweep, and what each has for them.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/agreement.h"

namespace pmaptrain::sweep {

// A process that starts runs: the only one, or one of those that a launcher has started.
struct Runner {
  std::string host = {};
  int cores = 1;                           // for its runs
  int sharers = 1;                         // processes on its host, with this one
  std::optional<std::size_t> memory = {};  // bytes for its runs; none: what a run finds available
  bool has_gpus = true;                    // false: another process runs trials on its GPUs
};

// What a process finds out about itself.
struct RunnerFacts {
  std::string host;
  std::string gpus;        // the GPUs that the environment leaves it; equal texts on one host: the same GPUs
  std::vector<int> cores;  // the numbers of those that it may use
  double quota = 0;        // of its cgroups, in cores; 0: no limit
  std::size_t memory = 0;  // available bytes
};
RunnerFacts own_facts();

// Divides what each host has over the processes on it. A core that several of them may use is shared by these, so
// processes that are bound to cores of their own have those, and others have equal parts of all.
std::vector<Runner> runners_of(std::span<const RunnerFacts> facts);

// The processes of a launcher; without `agreement`, this process alone. Every process calls it. All must have the same
// program and instruction set, because the bits of a run depend on these; else every process throws Error (usage).
std::vector<Runner> find_runners(Agreement* agreement);

}  // namespace pmaptrain::sweep
