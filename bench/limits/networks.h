// Networks. Of each, the limits measure the sum of the library's primitives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmaptrain::limits {

struct Layer {
  enum class Kind { conv, batch_norm, max_pool, global_avg_pool, dense, residual, product, attention } kind;
  std::int64_t features = 0;  // conv, dense and product: of the output
  bool relu = false;          // conv, dense and batch_norm: fused
  std::int64_t kernel = 3;    // conv: height and width
  std::int64_t stride = 1;    // conv
  bool bias = true;           // conv
  std::int64_t heads = 1;     // attention: causal, of a product that gives queries, keys and values
  // residual: relu(layers(x) + shortcut(x)); without a shortcut, of x itself.
  std::vector<Layer> layers = {}, shortcut = {};
};

// The padding of convolutions is SAME, pooling is 2x2 with stride 2, and dense layers have a bias. Of a network of
// products and attention only matrix products are measured.
struct Network {
  std::string name;
  std::int64_t height, width, channels;  // of the input; 1x1 for vectors
  std::int64_t batch;                    // over all devices
  std::vector<Layer> layers;
  std::int64_t positions = 1;  // of an example that is a sequence
  bool bf16 = false;           // activations and kernels; biases, statistics and the gradients of parameters are f32
};

Network cnn();                // 32x32x3, as configs/cnn.yaml
Network fashion_mnist();      // 28x28x1, as configs/fashion_mnist.yaml
Network mlp();                // 784-512-512-10, as bench/configs/mlp.yaml
Network wide_mlp();           // 784-4096-4096-10, as bench/configs/wide_mlp.yaml
Network resnet18();           // 32x32x3, as configs/resnet18.yaml
Network transformer();        // the products of bench/configs/transformer.yaml
Network transformer_large();  // and of bench/configs/transformer_large.yaml
// The same in bf16; its name ends in _bf16.
Network in_bf16(Network network);

}  // namespace pmaptrain::limits
