// The sum of the library's primitives that a network's training step cannot do without.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/limits/team.h"

namespace pmaptrain::limits {

struct Layer {
  enum class Kind { conv, max_pool, dense } kind;
  std::int64_t features = 0;  // conv and dense: of the output
  bool relu = false;          // conv and dense: as a post-op
};

// Convolutions are 3x3 with stride 1 and padding SAME, pooling is 2x2 with stride 2; all with a bias.
struct Network {
  std::string name;
  std::int64_t height, width, channels;  // of the input; 1x1 for vectors
  std::int64_t batch;                    // over all devices
  std::vector<Layer> layers;
  bool bf16 = false;  // activations and kernels; biases and the gradients of parameters are f32, as everything else is
};

Network cnn();            // 32x32x3, as configs/cnn.yaml
Network fashion_mnist();  // 28x28x1, as configs/fashion_mnist.yaml
Network mlp();            // 784-512-512-10, as bench/configs/mlp.yaml
Network wide_mlp();       // 784-4096-4096-10, as bench/configs/wide_mlp.yaml
// The same in bf16; its name ends in _bf16.
Network in_bf16(Network network);
bool has_bf16_instructions();

struct PrimitiveTime {
  std::string name;            // conv_0 forward
  std::string implementation;  // the library's name for it
  Seconds seconds;             // for the whole batch, divided over the workers
  double flops = 0;            // of the whole batch; 0 for pooling
};

struct NetworkTime {
  std::vector<PrimitiveTime> primitives;
  Seconds seconds;  // the sums of the medians and of the minima
};

// Each primitive of the step in the layouts that it likes best, with reorders between them not counted: once for each
// logical device, on the device's own data, the devices divided over the team (their number must be a multiple of its
// size), each worker single-threaded. All primitives run in turn, so that none finds its data in the cache that is
// not there in a real step. The input's gradient is left out. Throws Error or what the library throws.
NetworkTime measure(Team& team, const Network& network, std::int64_t devices, double seconds);

}  // namespace pmaptrain::limits
