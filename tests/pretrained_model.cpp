#include "tests/pretrained_model.h"

#include <bit>
#include <cstdint>
#include <map>
#include <utility>

#include "core/base/shape.h"
#include "tests/catch.h"
#include "tests/files.h"

namespace pmaptrain::testing {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Json pretrained_fixture(const std::string& name) {
  return Json::parse(test::read_text("tests/parity/pretrained/" + name + ".json"));
}

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
    values[i] = static_cast<float>(static_cast<int>(h >> 27) * 2 - 31);
  }
  return values;
}

std::vector<float> pretrained_tensor(const std::string& name, const Json& entry) {
  std::vector<float> values = hashed(name, static_cast<std::size_t>(numel(entry["shape"].get<Shape>())));
  for (float& value : values) value = entry["offset"].get<float>() + entry["gain"].get<float>() * value;
  return values;
}

namespace {

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
      const std::uint16_t two =
          dtype == "F16" ? half_of(value) : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
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
    header[name] = {
        {"dtype", dtype}, {"shape", tensor.first}, {"data_offsets", {data.size(), data.size() + tensor.second.size()}}};
    data += tensor.second;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFFU);
  test::write_text(path, length + text + data);
}

}  // namespace

void write_pretrained(const fs::path& folder, const Json& fixture) {
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
    files[next % shards][written] = {entry["shape"].get<Shape>(), elements_in(pretrained_tensor(name, entry), dtype)};
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

}  // namespace pmaptrain::testing
