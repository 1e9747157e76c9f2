#include "tests/gpu/networks.h"

#include <filesystem>
#include <utility>

#include "tests/session_run.h"

namespace pmaptrain::test {
namespace {

using Set = std::vector<std::string>;

Set together(Set all, const Set& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string images(int size, int channels) {
  const std::string sides = std::to_string(size);
  return "data.source={synthetic_images: {height: " + sides + ", width: " + sides +
         ", channels: " + std::to_string(channels) + ", classes: 10, train: 160, test: 20}}";
}

// A text that is there wherever the tests are.
Set text(int length) {
  const std::string file = std::filesystem::absolute("LICENSE").string();
  return {"data.source={text: {train: " + file + ", tokens: bytes, length: " + std::to_string(length) + "}}",
          "train.eval_every=null", "train.checkpoint.best=null"};
}

const Set few_steps = {"mesh.axes={devices: 4}",
                       "data.batch_size=16",
                       "train.duration=2 steps",
                       "train.log_every=1 step",
                       "optimizer.sgd={momentum: 0.9}",
                       "optimizer.learning_rate=0.05",
                       "optimizer.weight_decay_exclude=null"};

Set small_resnet() {
  Set set = {images(16, 3)};
  const auto features = [&set](const std::string& layer, int number) {
    set.push_back("model.layers." + layer + ".conv.features=" + std::to_string(number));
  };
  features("0", 4);
  for (int block = 0; block < 8; ++block) {
    const std::string path = std::to_string(3 + 2 * block) + ".residual.";
    const int stage = block / 2, number = 4 << stage;
    features(path + "layers.0", number);
    features(path + "layers.3", number);
    if (stage > 0 && block % 2 == 0) features(path + "shortcut.0", number);
  }
  return set;
}

// Of `layers`, which are repeated: an attention and two products.
Set small_blocks(const std::string& layers) {
  const std::string repeated = "model.layers." + layers + ".repeat.";
  // The loss does not depend on the bias of keys. One that begins at zero would stay at what rounding makes of its
  // gradient.
  return {repeated + "times=2", repeated + "layers.0.residual.layers.1.attention.heads=2",
          repeated + "layers.0.residual.layers.1.attention.bias_init={normal: {stddev: 0.02}}",
          repeated + "layers.1.residual.layers.1.dense=16", repeated + "layers.1.residual.layers.3.dense=8"};
}

Set small_gpt() {
  const Set sizes = {"model.layers.0.embedding.features=8", "model.layers.1.position_embedding.length=12"};
  return together(together(text(12), sizes), small_blocks("2"));
}

Set small_vit() {
  const Set sizes = {images(8, 1),
                     "data.normalize=null",
                     "data.augment=null",
                     "model.layers.0.conv.features=4",
                     "model.layers.2.conv.features=8",
                     "model.layers.4.conv.features=8",
                     "model.layers.5.reshape=[4, 8]",
                     "model.layers.6.position_embedding.length=4"};
  return together(sizes, small_blocks("7"));
}

}  // namespace

std::vector<Network> small_networks() {
  std::vector<Network> networks = {
      {"ResNet-18", "resnet18.yaml", small_resnet()},
      {"GPT with a tied output", "gpt.yaml", small_gpt()},
      {"GPT with an output of its own", "gpt.yaml", together(small_gpt(), {"model.layers.4={dense: 256}"})},
      {"ViT", "vit.yaml", small_vit()},
  };
  for (Network& network : networks) network.set = together(few_steps, network.set);
  return networks;
}

std::vector<Network> whole_networks() {
  const Set fashion = {images(28, 1)};
  return {
      {"ResNet-18", "resnet18.yaml", {"data.source.synthetic_images.train=1024"}},
      {"the residual network of Fashion-MNIST", "resnet_fashion.yaml", fashion},
      {"GPT", "gpt.yaml", text(128)},
      {"GPT-2", "gpt2.yaml", together(text(1024), {"data.batch_size=8", "data.microbatches=1"})},
      {"ViT", "vit.yaml", fashion},
  };
}

setup::Setup setup_of(const Network& network, const std::string& precision) {
  return testing::setup_of_config(network.config, together(network.set, {"precision=" + precision}));
}

}  // namespace pmaptrain::test
