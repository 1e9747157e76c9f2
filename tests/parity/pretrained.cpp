// Models of transformers and torchvision, from their weights to their outputs and back: make_pretrained_fixtures.py.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "app/pretrained_config.h"
#include "core/evaluate/generator.h"
#include "core/evaluate/predictor.h"
#include "core/exports/exporter.h"
#include "core/run/files/safetensors.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/pretrained_model.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using Json = nlohmann::ordered_json;

namespace {

// A run from the weights of a fixture, with the config that `init` writes for them, after one step that changes
// nothing.
struct Begun {
  TemporaryFolder folder;
  Json fixture;
  spec::Loaded loaded;
  std::string source;

  explicit Begun(const std::string& name) : fixture(pretrained_fixture(name)) {
    write_pretrained(folder / "weights", fixture);
    const bool is_folder = fixture.contains("config");
    source = folder / (is_folder ? "weights" : "weights/model.safetensors");
    const std::string file = folder / "tune.yaml";
    const app::PretrainedConfig config = app::pretrained_config(
        is_folder ? app::Pretrained::hf : app::Pretrained::torchvision, source, file, std::nullopt);
    test::write_text(file, config.text);
    spec::Overrides overrides;
    // No number is near 0, so a step changes none. Running statistics stay where all of a norm is frozen.
    overrides.set = {"optimizer={sgd: {}, learning_rate: 1.0e-30}", "train.eval_every=null", "data.batch_size=2"};
    if (fixture.contains("side")) {
      overrides.set.emplace_back(
          "optimizer.groups=[{parameters: ['head.*'], learning_rate_scale: 1}, {parameters: ['*'], freeze: true}]");
    }
    if (fixture.contains("side")) {
      const std::string side = std::to_string(fixture["side"].get<int>());
      const std::string classes = std::to_string(fixture["logits"][0].size());
      overrides.set.push_back("data.source={synthetic_images: {height: " + side + ", width: " + side +
                              ", channels: 3, classes: " + classes + ", train: 4, test: 2}}");
    }
    if (fixture.contains("prompt")) {  // of bytes only 256 numbers are tokens
      std::string ids;
      for (int i = 0; i < 600; ++i) ids += {static_cast<char>(i % 250), '\0'};
      test::write_text(folder / "ids.bin", ids);
      overrides.set.push_back("data.source={text: {train: " + (folder / "ids.bin") + ", tokens: uint16, length: 64}}");
    }
    loaded = spec::load(file, overrides);
    const setup::Setup setup = setup::make_setup(loaded);
    train_setup_in(folder / "run", setup, until(1));
  }

  // Of the run, in the layout from which it began.
  run::Tensors exported() const {
    exports::ExportRequest request;
    request.format = exports::ExportFormat::safetensors;
    request.layout = loaded.spec.model.initial_from->layout;
    const exports::Exporter exporter(loaded, folder / "run", request);
    const std::string path = folder / "back.safetensors";
    run::Replacement file(path);
    exporter.write(file);
    file.close();
    file.take_place();
    return run::read_safetensors(path);
  }
};

void check_logits(const Json& fixture, const std::vector<std::vector<float>>& ours, std::size_t every) {
  const double largest = fixture["largest"].get<double>();
  REQUIRE(ours.size() == fixture["logits"].size());
  double apart = 0;
  for (std::size_t row = 0; row < ours.size(); ++row) {
    const Json& expected = fixture["logits"][row];
    REQUIRE((ours[row].size() + every - 1) / every == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      apart = std::max(apart, std::abs(expected[i].get<double>() - static_cast<double>(ours[row][i * every])));
    }
  }
  CHECK(apart <= 1e-4 * largest);
}

void check_comes_back(const Json& fixture, const run::Tensors& exported) {
  CHECK(exported.size() == fixture["tensors"].size());
  for (const auto& [name, entry] : fixture["tensors"].items()) {
    INFO(name);
    REQUIRE(exported.contains(name));
    const run::Tensor& tensor = exported.at(name);
    CHECK(tensor.shape == entry["shape"].get<Shape>());
    const std::vector<float> expected = pretrained_tensor(name, entry);
    const auto* const bytes = reinterpret_cast<const std::byte*>(expected.data());
    CHECK(std::equal(tensor.bytes.begin(), tensor.bytes.end(), bytes, bytes + expected.size() * sizeof(float)));
  }
}

}  // namespace

TEST_CASE("language models of transformers have the same logits, continue texts alike, and go back", "[parity]") {
  const std::string name = GENERATE(std::string("gpt2"), "gpt2_other", "llama", "llama_scaled");
  INFO(name);
  const Begun begun(name);
  evaluate::Generator generator(begun.loaded, begun.folder / "run", "last", spec::Weights::raw, std::nullopt);
  const auto prompt = begun.fixture["prompt"].get<std::vector<std::int32_t>>();
  std::vector<std::vector<float>> logits;
  for (std::size_t i = 1; i <= prompt.size(); ++i) {
    const std::span<const float> next = generator.logits_after(std::span(prompt).first(i));
    logits.emplace_back(next.begin(), next.end());
  }
  check_logits(begun.fixture, logits, begun.fixture["every"].get<std::size_t>());
  std::vector<std::int32_t> generated;
  evaluate::Sampling greedy;
  greedy.temperature = 0;
  generator.run(prompt, 50, greedy, [&](std::int32_t token) { generated.push_back(token); });
  CHECK(generated == begun.fixture["generated"].get<std::vector<std::int32_t>>());
  check_comes_back(begun.fixture, begun.exported());
}

TEST_CASE("image classifiers of transformers and torchvision have the same logits, and go back", "[parity]") {
  const std::string name = GENERATE(std::string("vit"), "resnet");
  INFO(name);
  const Begun begun(name);
  const auto side = begun.fixture["side"].get<std::int64_t>();
  const std::size_t count = 2 * static_cast<std::size_t>(side * side) * 3;
  std::string pixels;
  for (const float value : hashed("pixels", count)) pixels += static_cast<char>((static_cast<int>(value) + 31) * 4);
  const std::string path = begun.folder / "x.npy";
  const std::string sides = std::to_string(side) + ", " + std::to_string(side);
  test::write_text(path, npy("|u1", "(2, " + sides + ", 3)", pixels));
  evaluate::PredictionRequest request;
  request.input.path = path;
  request.kind = model::PredictionKind::logits;
  evaluate::Predictor predictor(begun.loaded, begun.folder / "run", request);
  std::vector<std::vector<float>> logits;
  predictor.run([&](std::int64_t, std::span<const std::byte> rows) {
    const auto* values = reinterpret_cast<const float*>(rows.data());
    const std::size_t each = begun.fixture["logits"][0].size();
    for (std::size_t i = 0; i < rows.size() / sizeof(float); i += each)
      logits.emplace_back(values + i, values + i + each);
  });
  check_logits(begun.fixture, logits, 1);
  check_comes_back(begun.fixture, begun.exported());
}
