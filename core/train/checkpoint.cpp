#include "core/train/checkpoint.h"

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/version.h"
#include "core/data/open.h"

namespace pmaptrain::train {
namespace {

constexpr std::string_view not_complete = "the checkpoint is not complete: evaluate another one of the run";

data::Bytes open(const std::filesystem::path& path) {
  try {
    return data::map_file(path.string());
  } catch (const Error& error) {
    throw Error(error.status(),
                Diagnostic{"data", {}, error.diagnostics().front().message, std::string(not_complete), {}});
  }
}

// The checksum that state.json gives for a file of the checkpoint; empty when it gives none.
std::string checksum_of(const std::filesystem::path& state_file, const std::string& name) {
  const data::Bytes text = open(state_file);
  const auto* const begin = reinterpret_cast<const char*>(text.data());
  const auto state = nlohmann::json::parse(begin, begin + text.size(), nullptr, false);
  text.check_intact();
  if (!state.is_object() || !state.contains("checksums")) return {};
  const auto& checksums = state["checksums"];
  if (!checksums.is_object() || !checksums.contains(name) || !checksums[name].is_string()) return {};
  return checksums[name].get<std::string>();
}

void write_group(FileWriter& file, SlicedReader& reader, Group group) {
  const Program& program = reader.module().program(0);
  std::vector<TensorView> tensors;
  for (const Input& input : program.inputs) {
    if (input.group != group) continue;
    const Type& type = program.type(input.value);
    tensors.push_back({input.name, type.dtype, type.shape, {}});
  }
  write_safetensors(file, tensors, [&](const TensorView& tensor) {
    reader.read(reader.module().input(tensor.name), 0, [&](std::span<const std::byte> slice) { file.write(slice); });
  });
}

}  // namespace

void write_group(Module& module, std::size_t entry, Group group, std::span<const TensorView> tensors,
                 const std::string& file) {
  const Program& program = module.program(entry);
  std::map<std::string_view, const TensorView*> given;
  for (const TensorView& tensor : tensors) given[tensor.name] = &tensor;
  for (const auto& [name, tensor] : given) {
    const Input* const input = program.find_input(name);
    if (input != nullptr && input->group == group) continue;
    fail_data("'" + file + "' has a tensor '" + std::string(name) + "', which the model has not",
              "it is of another model or optimizer");
  }
  for (const Input& input : program.inputs) {
    if (input.group != group) continue;
    const auto found = given.find(input.name);
    if (found == given.end()) {
      fail_data("'" + file + "' has no tensor '" + input.name + "'", "it is of another model or optimizer");
    }
    const Type& type = program.type(input.value);
    const TensorView& tensor = *found->second;
    if (tensor.dtype != type.dtype || tensor.shape != type.shape) {
      fail_data("'" + file + "': '" + input.name + "' is " + std::string(to_string(tensor.dtype)) +
                    to_string(tensor.shape) + "; the model needs " + std::string(to_string(type.dtype)) +
                    to_string(type.shape),
                "it is of another model or optimizer");
    }
    module.wait(module.write(module.input(input.name), every_device, tensor.bytes));
  }
}

void save_checkpoint(const RunFolder& folder, const Setup& setup, SlicedReader& reader, const Progress& progress) {
  const std::string& config = setup.loaded.resolved;
  folder.commit_checkpoint(progress.step, [&](const Directory& into) {
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
      FileWriter file(into.place(name));
      write_group(file, reader, group);
      file.close();
      state["checksums"][name] = "xxh3:" + file.checksum();
    }
    const std::string text = state.dump(2) + "\n";
    FileWriter file(into.place("state.json"));
    file.write(std::as_bytes(std::span(text)));
    file.close();
  });
}

CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name) {
  const std::filesystem::path file = checkpoint / name, state = checkpoint / "state.json";
  const std::string expected = checksum_of(state, name);
  if (expected.empty()) {
    fail_data("'" + state.string() + "' is damaged: it has no checksum of " + name,
              "evaluate another checkpoint of the run");
  }
  CheckpointFile parameters{file.string(), open(file), {}};
  const std::string found = "xxh3:" + hash_hex(parameters.file.view());
  parameters.file.check_intact();
  if (expected != found) {
    fail_data("'" + file.string() + "' is damaged: it does not have the checksum that state.json gives",
              "evaluate another checkpoint of the run");
  }
  parameters.tensors = view_safetensors(parameters.file, parameters.path);
  return parameters;
}

CheckpointFile load_parameters(const std::filesystem::path& checkpoint) {
  return load_file(checkpoint, "params.safetensors");
}

CheckpointFile load_weights(const std::filesystem::path& checkpoint, spec::Weights weights) {
  std::error_code ignored;
  const bool averaged =
      weights == spec::Weights::ema && std::filesystem::exists(checkpoint / "ema.safetensors", ignored);
  return averaged ? load_file(checkpoint, "ema.safetensors") : load_parameters(checkpoint);
}

}  // namespace pmaptrain::train
