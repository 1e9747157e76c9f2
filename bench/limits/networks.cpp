#include "bench/limits/networks.h"

#include <utility>

namespace pmaptrain::limits {
namespace {

// A convolution without a bias and the batch norm after it.
void append_normed(std::vector<Layer>& layers, std::int64_t features, std::int64_t kernel, std::int64_t stride,
                   bool relu) {
  using enum Layer::Kind;
  layers.push_back({.kind = conv, .features = features, .kernel = kernel, .stride = stride, .bias = false});
  layers.push_back({.kind = batch_norm, .relu = relu});
}

// A block of two convolutions. One with a stride has a shortcut, for the image that it halves.
Layer block(std::int64_t features, std::int64_t stride) {
  Layer block{.kind = Layer::Kind::residual};
  append_normed(block.layers, features, 3, stride, true);
  append_normed(block.layers, features, 3, 1, false);
  if (stride != 1) append_normed(block.shortcut, features, 1, stride, false);
  return block;
}

Network products_of_transformer(std::string name, std::int64_t blocks, std::int64_t features, std::int64_t heads,
                                std::int64_t positions, std::int64_t batch) {
  using enum Layer::Kind;
  Network network{std::move(name), 1, 1, features, batch, {}, positions};
  for (std::int64_t i = 0; i < blocks; ++i) {
    network.layers.push_back({product, 3 * features});
    network.layers.push_back({.kind = attention, .heads = heads});
    for (const std::int64_t width : {features, 4 * features, features}) network.layers.push_back({product, width});
  }
  network.layers.push_back({product, 256});  // with the transposed embedding
  return network;
}

}  // namespace

Network cnn() {
  using enum Layer::Kind;

  return {"cnn", 32, 32, 3, 128, {{conv, 32, true}, {max_pool}, {conv, 64, true}, {max_pool}, {dense, 10}}};
}

Network fashion_mnist() {
  Network network = cnn();
  network.name = "fashion_mnist";
  network.height = network.width = 28;
  network.channels = 1;
  return network;
}

Network mlp() {
  using enum Layer::Kind;
  return {"mlp", 1, 1, 784, 256, {{dense, 512, true}, {dense, 512, true}, {dense, 10}}};
}

Network wide_mlp() {
  using enum Layer::Kind;
  return {"wide_mlp", 1, 1, 784, 256, {{dense, 4096, true}, {dense, 4096, true}, {dense, 10}}};
}

Network resnet18() {
  using enum Layer::Kind;
  Network network{"resnet18", 32, 32, 3, 128, {}};
  append_normed(network.layers, 64, 3, 1, true);
  for (const std::int64_t features : {64, 128, 256, 512}) {
    network.layers.push_back(block(features, features == 64 ? 1 : 2));
    network.layers.push_back(block(features, 1));
  }
  network.layers.push_back({global_avg_pool});
  network.layers.push_back({dense, 10});
  return network;
}

Network transformer() { return products_of_transformer("transformer", 4, 128, 4, 128, 32); }

Network transformer_large() { return products_of_transformer("transformer_large", 6, 384, 6, 256, 16); }

Network in_bf16(Network network) {
  network.name += "_bf16";
  network.bf16 = true;
  return network;
}

}  // namespace pmaptrain::limits
