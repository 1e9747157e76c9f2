#include "tests/train/session_run.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/spec/load.h"

namespace pmaptrain::testing {

namespace fs = std::filesystem;

const std::string small_images = R"(name: small_images
mesh:
  axes: {devices: 4}
data:
  source:
    synthetic_images: {height: 6, width: 6, channels: 1, classes: 3, train: 48, test: 21, noise: 0.1}
  batch_size: 16
model:
  layers:
    - conv: {features: 3, kernel_size: [3, 3]}
    - relu
    - max_pool: {window_shape: [2, 2], strides: [2, 2]}
    - flatten
    - dense: 3
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer:
  adam: {}
  learning_rate: 0.01
train:
  duration: 4 steps
  log_every: 1 step
  eval_every: 1 epoch
)";

train::Setup setup_of_config(const std::string& name, std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return train::make_setup(spec::load("configs/" + name, overrides));
}

train::Setup setup_of_text(const std::string& text, std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return train::make_setup(spec::load_text(text, "test.yaml", ".", overrides));
}

Trained train_setup(const train::Setup& setup, train::SessionOptions options) {
  const TemporaryFolder directory;
  return train_setup_in(directory / "run", setup, std::move(options));
}

Trained train_setup_in(const fs::path& dir, const train::Setup& setup, train::SessionOptions options) {
  options.run_dir = dir;
  Trained trained;
  train::Consumer* const consumer = &trained.recording;
  trained.ended = train::train(setup, options, {&consumer, 1});
  const fs::path checkpoint = train::find_checkpoint(dir, "last");
  trained.parameters = train::read_safetensors((checkpoint / "params.safetensors").string());
  trained.state = train::read_safetensors((checkpoint / "optimizer.safetensors").string());
  std::istringstream lines(read_text(dir / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    auto object = nlohmann::ordered_json::parse(line);
    object.erase("seconds");
    object.erase("examples_per_second");
    trained.metrics.push_back(object.dump());
  }
  return trained;
}

std::vector<double> numbers(const train::Tensor& tensor) {
  return dispatch(tensor.dtype, [&]<class T>() {
    std::vector<double> values(tensor.bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value{};
      std::memcpy(&value, tensor.bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
    return values;
  });
}

}  // namespace pmaptrain::testing
