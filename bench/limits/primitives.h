// The sum of the library's primitives that a network's training step cannot do without.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/limits/networks.h"
#include "bench/limits/team.h"

namespace pmaptrain::limits {

bool has_bf16_instructions();

struct PrimitiveTime {
  std::string name;            // conv_0 forward
  std::string implementation;  // the library's name for it
  Seconds seconds;             // for the whole batch, divided over the workers
  double flops = 0;            // of the whole batch; 0 for pooling, norms and sums
};

struct NetworkTime {
  std::vector<PrimitiveTime> primitives;
  Seconds seconds;              // the sums of the medians and of the minima
  std::int64_t parameters = 0;  // of the network; 0 for one of products
};

// Each primitive of the step in the layouts that it likes best, with reorders between them not counted: once for each
// logical device, on the device's own data, the devices divided over the team (their number must be a multiple of its
// size), each worker single-threaded. All primitives run in turn on arrays as a step has them, so that each finds in
// the caches what it would find there in a step. The input's gradient is left out, but for products. Throws Error or
// what the library throws.
NetworkTime measure(Team& team, const Network& network, std::int64_t devices, double seconds);

}  // namespace pmaptrain::limits
