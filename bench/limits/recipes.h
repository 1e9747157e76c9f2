// The library's primitives that a training step of a network consists of. Includes the library.
#pragma once

#include <cstdint>
#include <oneapi/dnnl/dnnl.hpp>
#include <string>
#include <vector>

#include "bench/limits/networks.h"

namespace pmaptrain::limits {

const dnnl::engine& engine();

struct Argument {
  int index;  // DNNL_ARG_...
  dnnl::memory::desc desc;
  // Arguments with the same number and layout are one array, as in a step: a primitive reads what an earlier one wrote,
  // and writes over its operand where no later one needs that.
  int array;
  bool shared = false;  // the same array for all devices: parameters
};

struct Recipe {
  std::string name;            // conv_0 forward
  std::string implementation;  // the library's name for it
  dnnl::primitive primitive;
  dnnl::memory::desc scratch;
  std::vector<Argument> arguments;
  double flops = 0;  // of one device, without those of padding; 0 for what does not multiply matrices
};

struct Step {
  std::vector<Recipe> recipes;  // in order: forward, then backward
  std::int64_t parameters = 0;  // of the network; those of products are not counted
};

// The step on one device with `batch` rows. Throws Error or what the library throws.
Step step_of(const Network& network, std::int64_t batch);

}  // namespace pmaptrain::limits
