#include "core/train/checkpoint.h"

#include <xxhash.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/data/open.h"

namespace pmaptrain::train {
namespace {

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) fail_data("'" + path.string() + "' is missing", "the checkpoint is not complete");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace

Tensors read_group(const CpuExecutor& executor, Group group) {
  const Program& program = *executor.plan().program;
  Tensors tensors;
  for (const Input& input : program.inputs) {
    if (input.group != group) continue;
    const std::span<const std::byte> bytes = executor.input(input.name);
    const Type& type = program.type(input.value);
    tensors[input.name] = {type.dtype, type.shape, {bytes.begin(), bytes.end()}};
  }
  return tensors;
}

void write_group(CpuExecutor& executor, Group group, const Tensors& tensors, const std::string& file) {
  const Program& program = *executor.plan().program;
  for (const Input& input : program.inputs) {
    if (input.group != group) continue;
    const auto found = tensors.find(input.name);
    if (found == tensors.end()) {
      fail_data("'" + file + "' has no tensor '" + input.name + "'", "it is of another model or optimizer");
    }
    const Type& type = program.type(input.value);
    const Tensor& tensor = found->second;
    if (tensor.dtype != type.dtype || tensor.shape != type.shape) {
      fail_data("'" + file + "': '" + input.name + "' is " + std::string(to_string(tensor.dtype)) +
                    to_string(tensor.shape) + "; the model needs " + std::string(to_string(type.dtype)) +
                    to_string(type.shape),
                "it is of another model or optimizer");
    }
    executor.set(input.name, tensor.bytes);
  }
}

void save_checkpoint(const RunFolder& folder, const Setup& setup, const CpuExecutor& executor,
                     const Progress& progress) {
  const std::string& config = setup.loaded.resolved;
  folder.commit_checkpoint(progress.step, [&](const std::filesystem::path& into) {
    nlohmann::ordered_json state;
    state["step"] = progress.step;
    state["example_cursor"] = progress.example_cursor;
    state["seed"] = setup.spec().seed;
    state["data_seed"] = data::seed_of(setup.spec().data, setup.spec().seed);
    state["config_hash"] = hash_hex(std::as_bytes(std::span(config.data(), config.size())));
    state["version"] = version;
    for (const auto& [name, group] : {std::pair{"params.safetensors", Group::params},
                                      std::pair{"optimizer.safetensors", Group::state}}) {
      write_safetensors((into / name).string(), read_group(executor, group));
      state["checksums"][name] = "xxh3:" + hash_hex(read_bytes(into / name));
    }
    write_whole(into / "state.json", state.dump(2) + "\n");
  });
}

Tensors load_parameters(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "params.safetensors";
  const std::vector<std::byte> text = read_bytes(checkpoint / "state.json");
  const auto state = nlohmann::json::parse(reinterpret_cast<const char*>(text.data()),
                                           reinterpret_cast<const char*>(text.data()) + text.size(), nullptr, false);
  const auto expected = state.is_object() ? state.value("/checksums/params.safetensors"_json_pointer, std::string())
                                          : std::string();
  if (expected.empty()) fail_data("'" + (checkpoint / "state.json").string() + "' is damaged: it has no checksum");
  if (expected != "xxh3:" + hash_hex(read_bytes(file))) {
    fail_data("'" + file.string() + "' is damaged: it does not have the checksum that state.json gives");
  }
  return read_safetensors(file.string());
}

std::string hash_hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  const XXH64_hash_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += digits[hash >> shift & 15];
  return text;
}

}  // namespace pmaptrain::train
