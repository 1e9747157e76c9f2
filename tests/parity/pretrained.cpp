// Models of transformers and torchvision, from their weights to their outputs and back: make_pretrained_fixtures.py.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/pretrained_config.h"
#include "core/base/bf16.h"
#include "core/evaluate/generator.h"
#include "core/evaluate/predictor.h"
#include "core/exports/exporter.h"
#include "core/run/files/safetensors.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using Json = nlohmann::ordered_json;

namespace {

namespace fs = std::filesystem;

Json fixture_of(const std::string& name) {
  return Json::parse(read_text("tests/parity/pretrained/" + name + ".json"));
}

// The numbers of value() in make_pretrained_fixtures.py.
std::vector<float> hashed(const std::string& name, std::size_t count) {
  std::uint32_t seed = 2166136261U;
  for (const char c : name) seed = (seed ^ static_cast<std::uint8_t>(c)) * 16777619U;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 2654435761U + seed;
    h ^= h >> 16;
    h *= 0x85EBCA6BU;
    h ^= h >> 13;
    h *= 0xC2B2AE35U;
    h ^= h >> 16;
    values[i] = static_cast<float>(static_cast<int>(h >> 25) - 64);
  }
  return values;
}

std::vector<float> tensor_of(const std::string& name, const Json& entry) {
  std::vector<float> values = hashed(name, static_cast<std::size_t>(numel(entry["shape"].get<Shape>())));
  for (float& value : values) value = entry["offset"].get<float>() + entry["gain"].get<float>() * value;
  return values;
}

// The bits of a value that f16 holds exactly, and that is no subnormal there.
std::uint16_t half_of(float value) {
  if (value == 0) return 0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = (bits >> 23 & 0xFFU) - 127 + 15;
  REQUIRE((exponent > 0 && exponent < 31 && (bits & 0x1FFFU) == 0));
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | exponent << 10 | (bits >> 13 & 0x3FFU));
}

std::string elements_in(const std::vector<float>& values, const std::string& dtype) {
  std::string bytes;
  for (const float value : values) {
    if (dtype == "F32") {
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else {
      const std::uint16_t two = dtype == "F16" ? half_of(value)
                                               : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
      bytes.append(reinterpret_cast<const char*>(&two), sizeof two);
    }
  }
  return bytes;
}

// A file of safetensors, written by hand, since this program writes no f16.
void write_file(const fs::path& path, const std::map<std::string, std::pair<Shape, std::string>>& tensors,
                const std::string& dtype) {
  Json header{{"__metadata__", {{"format", "pt"}}}};
  std::string data;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", dtype}, {"shape", tensor.first}, {"data_offsets", {data.size(), data.size() + tensor.second.size()}}};
    data += tensor.second;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  test::write_text(path, length + text + data);
}

// What save_pretrained() writes: config.json and one file, or several with their index. Of a ResNet the file alone.
void write_model(const fs::path& folder, const Json& fixture) {
  fs::create_directories(folder);
  const auto dtype = fixture["dtype"].get<std::string>();
  const auto shards = fixture["shards"].get<std::size_t>();
  std::vector<std::map<std::string, std::pair<Shape, std::string>>> files(shards);
  Json index{{"metadata", Json::object()}, {"weight_map", Json::object()}};
  std::size_t next = 0;
  const auto file_name = [&](std::size_t i) {
    return shards == 1 ? std::string("model.safetensors")
                       : "model-0000" + std::to_string(i + 1) + "-of-0000" + std::to_string(shards) + ".safetensors";
  };
  for (const auto& [name, entry] : fixture["tensors"].items()) {
    const std::string written = fixture.contains("renamed") ? fixture["renamed"][name].get<std::string>() : name;
    files[next % shards][written] = {entry["shape"].get<Shape>(), elements_in(tensor_of(name, entry), dtype)};
    index["weight_map"][written] = file_name(next++ % shards);
  }
  if (fixture.contains("masks")) {
    for (const auto& [name, shape] : fixture["masks"].items()) {
      const auto of = shape.get<Shape>();
      files[0][name] = {of, elements_in(std::vector<float>(static_cast<std::size_t>(numel(of)), 1), dtype)};
    }
  }
  for (std::size_t i = 0; i < shards; ++i) write_file(folder / file_name(i), files[i], dtype);
  if (shards > 1) test::write_text(folder / "model.safetensors.index.json", index.dump());
  if (fixture.contains("config")) test::write_text(folder / "config.json", fixture["config"].dump());
  if (fixture.contains("mean")) {
    test::write_text(folder / "preprocessor_config.json",
                     Json{{"image_mean", fixture["mean"]}, {"image_std", fixture["std"]}}.dump());
  }
}

// A run from the weights of a fixture, with the config that `init` writes for them, after one step that changes nothing.
struct Begun {
  TemporaryFolder folder;
  Json fixture;
  spec::Loaded loaded;
  std::string source;

  explicit Begun(const std::string& name, std::vector<std::string> set = {}) : fixture(fixture_of(name)) {
    write_model(folder / "weights", fixture);
    const bool is_folder = fixture.contains("config");
    source = folder / (is_folder ? "weights" : "weights/model.safetensors");
    const std::string file = folder / "tune.yaml";
    const app::PretrainedConfig config = app::pretrained_config(
        is_folder ? app::Pretrained::hf : app::Pretrained::torchvision, source, file, std::nullopt);
    test::write_text(file, config.text);
    spec::Overrides overrides;
    overrides.set = {"optimizer={sgd: {}, learning_rate: 1.0e-30}", "train.eval_every=null", "data.batch_size=2"};
    if (fixture.contains("side")) {
      const std::string side = std::to_string(fixture["side"].get<int>());
      const std::string classes = std::to_string(fixture["logits"][0].size());
      overrides.set.push_back("data.source={synthetic_images: {height: " + side + ", width: " + side +
                              ", channels: 3, classes: " + classes + ", train: 4, test: 2}}");
    }
    overrides.set.insert(overrides.set.end(), set.begin(), set.end());
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
    const std::vector<float> expected = tensor_of(name, entry);
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
  for (const float value : hashed("pixels", count)) pixels += static_cast<char>((static_cast<int>(value) + 64) * 2);
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
    for (std::size_t i = 0; i < rows.size() / sizeof(float); i += each) logits.emplace_back(values + i, values + i + each);
  });
  check_logits(begun.fixture, logits, 1);
  check_comes_back(begun.fixture, begun.exported());
}
