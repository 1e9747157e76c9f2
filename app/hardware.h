// The hardware that this process sees and may use.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace pmaptrain::app {

struct CacheLevel {
  int level = 1;
  std::string kind;  // "data", "instruction", "unified"
  std::size_t bytes = 0;
  int count = 0;  // of this size
};

struct Hardware {
  std::string model;            // of the processor
  int packages = 0, cores = 0;  // of the machine
  int threads = 0;              // hardware threads of the machine
  int allowed_threads = 0;      // that affinity and cpusets leave to this process
  double quota = 0;             // the CPU quota of the cgroups, in cores; 0: no limit
  std::size_t memory = 0;       // of the machine, in bytes
  std::size_t available = 0;    // of it, free for this process: cgroups' limits counted
  int numa_nodes = 0;
  std::vector<CacheLevel> caches;
};

Hardware find_hardware();

}  // namespace pmaptrain::app
