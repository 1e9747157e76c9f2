#include "tests/train/long_run.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <sstream>

#include "core/train/npy.h"
#include "tests/catch.h"

namespace pmaptrain::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::read_text;

constexpr int features = 6, classes = 3;

template <class T>
train::Tensor tensor_of(DType dtype, Shape shape, const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
}

// Normal features, whose first three say the class by the largest. Those of row `overflowing` are finite, but not what
// a layer makes of them.
void add_split(train::Tensors& arrays, const std::string& name, int rows, int overflowing, unsigned seed) {
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

void erase_times(json& object) {
  for (const char* const time : {"seconds", "examples_per_second", "epoch_seconds"}) object.erase(time);
}

// Without times, and what depends on how many digits they have or on the number of workers.
std::string kept_of_state(const std::string& text) {
  json state = json::parse(text);
  erase_times(state);
  if (state["last_step"].is_object()) erase_times(state["last_step"]);
  for (const char* const other : {"metrics_bytes", "checksum", "config_hash"}) state.erase(other);
  return state.dump();
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

LongRun::LongRun(int steps, std::vector<std::string> set) : set_(std::move(set)) {
  train::Tensors arrays;
  add_split(arrays, "train", 90, 17, 1);
  add_split(arrays, "test", 11, -1, 2);
  train::write_npz(folder_ / "data.npz", arrays);
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
      const std::string text = read_text(file.path());
      const bool is_state = file.path().filename() == "state.json";
      kept[checkpoint + "/" + file.path().filename().string()] = is_state ? kept_of_state(text) : text;
    }
  }
  std::istringstream lines(read_text(run / "metrics.jsonl"));
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    json object = json::parse(line);
    erase_times(object);
    kept["metrics.jsonl:" + std::to_string(++number)] = object.dump();
  }
  json summary = json::parse(read_text(run / "summary.json"));
  erase_times(summary);
  for (const char* const other : {"run_dir", "config_hash"}) summary.erase(other);
  kept["summary.json"] = summary.dump();
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
