#include "tests/train/long_run.h"

#include <cstdint>
#include <random>
#include <span>
#include <sstream>

#include "core/run/files/npy.h"
#include "tests/catch.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;
using test::read_text;

constexpr int features = 6, classes = 3;

template <class T>
run::Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

// Normal features, whose first three say the class by the largest. Those of row `overflowing` are finite, but not what
// a layer makes of them.
void add_split(run::Tensors& arrays, const std::string& name, int rows, int overflowing, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (int row = 0; row < rows; ++row) {
    float largest = -10;
    y.push_back(0);
    for (int i = 0; i < features; ++i) {
      const float value = static_cast<float>(random()) / 2e9F - 1;
      if (i < classes && value > largest) {
        largest = value;
        y.back() = i;
      }
      x.push_back(row == overflowing ? (i % 2 == 0 ? 3e38F : -3e38F) : value);
    }
  }
  arrays["x_" + name] = tensor_of(DType::f32, {rows, features}, x);
  arrays["y_" + name] = tensor_of(DType::i32, {rows}, y);
}

const std::vector<std::string> times = {"seconds", "examples_per_second", "epoch_seconds"};

std::vector<std::string> times_and(std::vector<std::string> keys) {
  keys.insert(keys.end(), times.begin(), times.end());
  return keys;
}

}  // namespace

std::string differences(const Kept& a, const Kept& b) {
  std::string names;
  for (const auto& [name, bytes] : a) {
    if (!b.contains(name)) names += name + " is missing\n";
    if (b.contains(name) && b.at(name) != bytes) names += name + " differs\n";
  }
  for (const auto& [name, bytes] : b) {
    if (!a.contains(name)) names += name + " is too many\n";
  }
  return names;
}

std::vector<std::string> three_members() {
  return {"mesh.axes=[{members: 3}, {devices: 4}]",
          "ensemble={axis: members, vary: {seed: [3, 4, 5], "
          "optimizer.learning_rate.warmup_cosine_decay.peak_value: [0.01, 1.5, 0.002]}}",
          "train.eval_every=6 steps", "train.early_stopping.patience=1"};
}

std::string with_zeros(std::string text, const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    const std::string quoted = "\"" + key + "\":";
    for (std::size_t at = 0; (at = text.find(quoted, at)) != std::string::npos;) {
      at += quoted.size();
      std::size_t end = text.find_first_not_of(' ', at);
      if (text.at(end) == '"') end = text.find('"', end + 1) + 1;
      text.replace(at, text.find_first_of(",}\n", end) - at, "0");
    }
  }
  return text;
}

LongRun::LongRun(int steps, std::vector<std::string> set) : set_(std::move(set)) {
  run::Tensors arrays;
  add_split(arrays, "train", 90, 17, 1);
  add_split(arrays, "test", 11, -1, 2);
  run::write_npz(folder_ / "data.npz", arrays);
  config_ = folder_.write("config.yaml", R"(name: long_run
seed: 3
mesh: {axes: {devices: 4}, workers: 2}
data:
  source: {npz: {file: data.npz, train: [x_train, y_train], test: [x_test, y_test]}}
  batch_size: 16
  microbatches: 2
  remainder: mask
  validation: {share: 0.1, shuffle: false}
model: {layers: [{dense: 8}, relu, {dropout: 0.2}, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer:
  adam: {}
  learning_rate: {warmup_cosine_decay: {peak_value: 0.02, warmup: 2 epochs}}
  clip_by_global_norm: 1.0
  reduce_on_plateau: {metric: loss, factor: 0.9, patience: 2}
train:
  log_every: 4 steps
  eval_every: 10 steps
  checkpoint: {every: 7 steps, keep: 2, best: {metric: loss}}
  early_stopping: {metric: loss, patience: 1000}
  ema: {decay: 0.9}
  loss_spike: {factor: 1.2, window: 8 steps}
  on_nonfinite: skip
  duration: )" + std::to_string(steps) + " steps\n");
}

std::vector<std::string> LongRun::command(const std::string& name, const std::vector<std::string>& more) const {
  std::vector<std::string> arguments = {"run", config_, "--run-dir", path(name), "--quiet"};
  for (const std::string& set : set_) arguments.insert(arguments.end(), {"--set", set});
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

Kept LongRun::kept(const std::string& name) const {
  const fs::path run = path(name);
  Kept kept;
  for (const fs::directory_entry& entry : fs::directory_iterator(run / "checkpoints")) {
    const std::string checkpoint = entry.path().filename().string();
    if (entry.is_symlink()) {
      kept[checkpoint] = fs::read_symlink(entry.path()).string();
      continue;
    }
    if (!entry.is_directory()) continue;
    for (const fs::directory_entry& file : fs::directory_iterator(entry.path())) {
      const std::string name = checkpoint + "/" + file.path().filename().string();
      kept[name] = read_text(file.path());
      if (!name.ends_with("/state.json")) continue;
      // The rest depends on how many digits times have, or on the number of workers.
      kept[name] = with_zeros(std::move(kept[name]), times_and({"metrics_bytes", "checksum", "config_hash"}));
    }
  }
  std::istringstream lines(with_zeros(read_text(run / "metrics.jsonl"), times));
  int number = 0;
  for (std::string line; std::getline(lines, line);) kept["metrics.jsonl:" + std::to_string(++number)] = line;
  kept["summary.json"] = with_zeros(read_text(run / "summary.json"), times_and({"run_dir", "config_hash"}));
  return kept;
}

tests::Finished LongRun::run(const std::string& name, const std::vector<std::string>& more) const {
  return tests::call_with_display(command(name, more));
}

void LongRun::complete(const std::string& name, const std::vector<std::string>& more) const {
  const tests::Finished result = run(name, more);
  INFO(result.err);
  REQUIRE(result.status == 0);
}

}  // namespace pmaptrain::testing
