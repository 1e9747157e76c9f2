#include "core/train/checkpoint.h"

#include <xxhash.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/data/open.h"

namespace pmaptrain::train {
namespace {

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error) {
    fail_data("'" + path.string() + "' cannot be read: " + error.message(), "the checkpoint is not complete");
  }
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size))) {
    fail_data("'" + path.string() + "' cannot be read to its end", "the checkpoint is not complete");
  }
  return bytes;
}

// The checksum that state.json gives for a file of the checkpoint; empty when it gives none.
std::string checksum_of(const std::filesystem::path& state_file, const std::string& name) {
  const std::vector<std::byte> text = read_bytes(state_file);
  const auto* const begin = reinterpret_cast<const char*>(text.data());
  const auto state = nlohmann::json::parse(begin, begin + text.size(), nullptr, false);
  if (!state.is_object() || !state.contains("checksums")) return {};
  const auto& checksums = state["checksums"];
  if (!checksums.is_object() || !checksums.contains(name) || !checksums[name].is_string()) return {};
  return checksums[name].get<std::string>();
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
  for (const auto& [name, tensor] : tensors) {
    const Input* const input = program.find_input(name);
    if (input != nullptr && input->group == group) continue;
    fail_data("'" + file + "' has a tensor '" + name + "', which the model has not",
              "it is of another model or optimizer");
  }
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
    state["steps_skipped"] = progress.steps_skipped;
    state["seed"] = setup.spec().seed;
    state["data_seed"] = data::seed_of(setup.spec().data, setup.spec().seed);
    state["config_hash"] = hash_hex(std::as_bytes(std::span(config.data(), config.size())));
    state["version"] = version;
    for (const auto& [name, group] :
         {std::pair{"params.safetensors", Group::params}, std::pair{"optimizer.safetensors", Group::state}}) {
      write_safetensors((into / name).string(), read_group(executor, group));
      state["checksums"][name] = "xxh3:" + hash_hex(read_bytes(into / name));
    }
    write_whole(into / "state.json", state.dump(2) + "\n");
  });
}

Tensors load_parameters(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / "params.safetensors", state = checkpoint / "state.json";
  const std::string expected = checksum_of(state, "params.safetensors");
  if (expected.empty()) {
    fail_data("'" + state.string() + "' is damaged: it has no checksum of params.safetensors",
              "evaluate another checkpoint of the run");
  }
  if (expected != "xxh3:" + hash_hex(read_bytes(file))) {
    fail_data("'" + file.string() + "' is damaged: it does not have the checksum that state.json gives",
              "evaluate another checkpoint of the run");
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
