// Residual networks and transformers of configs/, which are too large for emulated GPUs, with few features.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::test {

struct Network {
  std::string name, config;
  std::vector<std::string> set;  // --set options that make it small
};

// ResNet-18 with its 20 convolutions and batch norms; GPT with causal attention, its output tied to the embedding and
// not; and a vision transformer. Each takes few steps of SGD on four devices: Adam would make an update of the last
// bits of gradients that are nearly zero.
std::vector<Network> small_networks();

// As wide as they are shipped, with data that is on every machine.
std::vector<Network> whole_networks();

setup::Setup setup_of(const Network& network, const std::string& precision);

}  // namespace pmaptrain::test
