#include "tests/session_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/data/arrays/idx_source.h"
#include "core/runtime/backends.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"

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

setup::Setup setup_of_config(const std::string& name, std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return setup::make_setup(spec::load("configs/" + name, overrides));
}

setup::Setup setup_of_text(const std::string& text, std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return setup::make_setup(spec::load_text(text, "test.yaml", ".", overrides));
}

std::string any_backend() {
  const BackendKind kind = GENERATE(from_range(std::begin(host_backends), std::end(host_backends)));
  UNSCOPED_INFO(to_string(kind));
  return "mesh.backend=" + std::string(to_string(kind));
}

std::vector<std::string> shipped_configs() {
  std::vector<std::string> configs;
  for (const fs::directory_entry& entry : fs::directory_iterator("configs")) {
    const std::string name = entry.path().filename().string();
    const bool is_large = name.starts_with("resnet") || name.starts_with("gpt") || name.starts_with("vit");
    if (entry.path().extension() != ".yaml" || is_large) continue;
    if (name == "fashion_mnist.yaml" && !fs::exists(data::FashionMnist{}.dir)) {
      WARN("dataset-fashion-mnist is not installed: configs/fashion_mnist.yaml is left out");
      continue;
    }
    configs.push_back(name);
  }
  REQUIRE(configs.size() >= 3);
  std::sort(configs.begin(), configs.end());
  return configs;
}

setup::Setup shortened(const std::string& config, KernelChoice kernels) {
  std::vector<std::string> set = {"train.duration=3 steps", "train.log_every=1 step"};
  if (config == "cnn.yaml" || config == "fashion_mnist.yaml") {
    set.emplace_back("data.batch_size=16");
    if (kernels == KernelChoice::reference) {
      set.emplace_back("model.layers.0.conv.features=4");
      set.emplace_back("model.layers.3.conv.features=4");
    }
  }
  if (config == "cnn.yaml") {
    for (const char* size : {"height=8", "width=8", "train=48", "test=21"}) {
      set.push_back(std::string("data.source.synthetic_images.") + size);
    }
  }
  if (config == "signals.yaml") {
    set.emplace_back("data.source={synthetic_signals: {positions: 30, shortest: 4, train: 120, test: 21}}");
    set.emplace_back("data.batch_size=16");
    set.emplace_back("model.layers.2.conv.features=4");
  }
  if (config == "shops.yaml") {
    set.emplace_back("data.limit={train: 256, validation: 64}");
    set.emplace_back("metrics=[mean_absolute_error]");  // an r2 near 0 is a difference of numbers near 1
  }
  if (config == "reviews.yaml") {
    set.emplace_back("data.limit={train: 96, validation: 32}");
    set.emplace_back("data.batch_size=16");
    set.emplace_back("model.layers.2.conv.features=4");
  }
  if (config == "volumes.yaml") {
    set.emplace_back("data.source={synthetic_volumes: {depth: 6, height: 4, width: 8, train: 48, test: 21}}");
    set.emplace_back("data.batch_size=16");
    for (const char* const conv : {"0", "3", "6"}) {
      set.push_back("model.layers." + std::string(conv) + ".conv.features=4");
    }
  }
  if (config == "unet.yaml") {
    const std::string below = "model.layers.3.parallel.branches.below.", lowest = below + "4.parallel.branches.below.";
    set.emplace_back("mesh.axes.devices=8");
    set.emplace_back("data.source={synthetic_masks: {height: 8, width: 8, train: 48, test: 21}}");
    set.emplace_back("optimizer.learning_rate.warmup_cosine_decay.warmup=1 step");
    set.emplace_back("data.batch_size=16");
    for (const std::string& conv : {std::string("model.layers.0"), below + "1", lowest + "1", lowest + "4", below + "5",
                                    std::string("model.layers.4")}) {
      set.push_back(conv + ".conv.features=4");
    }
  }
  setup::Setup setup = setup_of_config(config, set);
  if (config == "fashion_mnist.yaml") {
    // Ten thousand test images a run would take longer than all else.
    setup.source.test = nullptr;
    setup.evaluations.clear();
    setup.timetable.eval_every = 0;
  }
  return setup;
}

Trained train_setup(const setup::Setup& setup, train::SessionOptions options) {
  const TemporaryFolder directory;
  return train_setup_in(directory / "run", setup, std::move(options));
}

Trained train_setup_in(const fs::path& dir, const setup::Setup& setup, train::SessionOptions options) {
  options.run_dir = dir;
  Trained trained;
  run::Consumer* const consumer = &trained.recording;
  trained.ended = train::train(setup, options, {&consumer, 1});
  const fs::path checkpoint = run::find_checkpoint(dir, "last");
  trained.parameters = run::read_safetensors((checkpoint / "params.safetensors").string());
  trained.state = run::read_safetensors((checkpoint / "optimizer.safetensors").string());
  std::istringstream lines(read_text(dir / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    auto object = nlohmann::ordered_json::parse(line);
    object.erase("seconds");
    object.erase("examples_per_second");
    trained.metrics.push_back(object.dump());
  }
  return trained;
}

std::vector<double> to_doubles(const run::Tensor& tensor) {
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

namespace {

// The tolerance is relative to the largest value. Both arrays have their infinities and NaNs in the same places. One
// assertion is made for an array, since it may have millions of elements.
void check_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  double largest = 0;
  for (const double value : expected) largest = std::max(largest, std::isfinite(value) ? std::abs(value) : 0);
  std::size_t first = found.size(), number = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool is_near =
        std::isfinite(expected[i]) ? std::abs(found[i] - expected[i]) <= tolerance * largest : !std::isfinite(found[i]);
    if (is_near) continue;
    first = std::min(first, i);
    ++number;
  }
  if (number > 0) UNSCOPED_INFO("element " << first << ": " << found[first] << ", expected " << expected[first]);
  UNSCOPED_INFO("to " << tolerance * largest << ", of " << found.size() << " elements");
  CHECK(number == 0);
}

void check_near(const run::Tensors& found, const run::Tensors& expected, double tolerance) {
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, tensor] : expected) {
    INFO(name);
    check_near(to_doubles(found.at(name)), to_doubles(tensor), tolerance);
  }
}

// Without the warning of a CPU that has no fast instructions for bf16: it is compared with GPUs, which have none.
std::vector<std::size_t> kinds_of_events(const Trained& trained) {
  std::vector<std::size_t> kinds;
  for (const run::Event& event : trained.recording.events) {
    const auto* const warned = std::get_if<run::Warned>(&event);
    const bool is_of_cpu =
        warned != nullptr && warned->text.starts_with("precision: mixed_bfloat16 is not faster than float32 here");
    if (!is_of_cpu) kinds.push_back(event.index());
  }
  return kinds;
}

}  // namespace

void check_near(const run::Measures& found, const run::Measures& expected, const Tolerance& tolerance) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO(expected[i].first);
    check_near(std::vector{found[i].second}, {expected[i].second}, tolerance.measures);
  }
}

void check_same_training(const Trained& found, const Trained& expected, const Tolerance& tolerance) {
  CHECK(found.ended.status == expected.ended.status);
  CHECK(found.ended.reason == expected.ended.reason);
  CHECK(found.ended.steps == expected.ended.steps);
  CHECK(found.ended.steps_skipped() == expected.ended.steps_skipped());
  check_near(found.parameters, expected.parameters, tolerance.parameters);
  REQUIRE(kinds_of_events(found) == kinds_of_events(expected));
  const auto logged = found.of<run::Logged>(), as_logged = expected.of<run::Logged>();
  for (std::size_t i = 0; i < logged.size(); ++i) {
    check_near(logged[i].measures, as_logged[i].measures, tolerance);
    check_near(std::vector{logged[i].grad_norm}, {as_logged[i].grad_norm}, tolerance.measures);
  }
  const auto epochs = found.of<run::EpochEnded>(), as_epochs = expected.of<run::EpochEnded>();
  for (std::size_t i = 0; i < epochs.size(); ++i) {
    CHECK(epochs[i].examples == as_epochs[i].examples);
    check_near(epochs[i].measures, as_epochs[i].measures, tolerance);
  }
  const auto evaluated = found.of<run::Evaluated>(), as_evaluated = expected.of<run::Evaluated>();
  for (std::size_t i = 0; i < evaluated.size(); ++i)
    check_near(evaluated[i].measures, as_evaluated[i].measures, tolerance);
}

}  // namespace pmaptrain::testing
