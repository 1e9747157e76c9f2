#include "core/train/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "core/data/open.h"
#include "core/train/start.h"

namespace pmaptrain::train {
namespace {

constexpr std::string_view not_complete = "the checkpoint is not complete: use another one of the run";

bool contains(std::span<const std::size_t> values, std::size_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

data::Bytes open(const std::filesystem::path& path) {
  try {
    return data::map_file(path.string());
  } catch (const Error& error) {
    throw Error(error.status(),
                Diagnostic{"data", {}, error.diagnostics().front().message, std::string(not_complete), {}});
  }
}

// The state of the guard says nothing of a run that goes on.
std::vector<std::size_t> guard_inputs(const StepRoles& roles) {
  std::vector<std::size_t> inputs;
  for (const std::optional<std::size_t>& input : {roles.finite, roles.skipped}) {
    if (input) inputs.push_back(*input);
  }
  return inputs;
}

CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name, const RunState& state) {
  const std::filesystem::path path = checkpoint / name;
  CheckpointFile loaded{path.string(), open(path), {}};
  const std::string found = "xxh3:" + hash_hex(loaded.file.view());
  loaded.file.check_intact();
  const auto expected = state.checksums.find(name);
  if (expected == state.checksums.end() || expected->second != found) {
    fail_data("'" + loaded.path + "' is damaged: it does not have the checksum that state.json gives",
              "use another checkpoint of the run");
  }
  loaded.tensors = view_safetensors(loaded.file, loaded.path);
  return loaded;
}

// Writes a file of inputs, by the names of their tensors, into a checkpoint, and its checksum into the state.
void write_file(const Directory& into, const std::string& name, const Program& program,
                const std::map<std::string_view, std::size_t>& inputs, const Slices& slices, RunState& state) {
  std::vector<TensorView> tensors;
  for (const auto& [tensor, input] : inputs) {
    const Type& type = program.type(program.inputs[input].value);
    tensors.push_back({std::string(tensor), type.dtype, type.shape, {}});
  }
  FileWriter file(into.place(name));
  write_safetensors(file, tensors, [&](const TensorView& tensor) {
    slices(inputs.at(tensor.name), [&](std::span<const std::byte> slice) { file.write(slice); });
  });
  file.close();
  state.checksums[name] = "xxh3:" + file.checksum();
}

// The elements divided as the evaluation divides them.
Slices divided(const Slices& slices, DType dtype, double by) {
  return [&slices, dtype, by](std::size_t input, const std::function<void(std::span<const std::byte>)>& use) {
    slices(input, [&](std::span<const std::byte> slice) {
      dispatch_floating(dtype, [&]<class T>() {
        std::array<T, 4096> quotients;
        while (!slice.empty()) {
          const std::size_t count = std::min(quotients.size(), slice.size() / sizeof(T));
          std::memcpy(quotients.data(), slice.data(), count * sizeof(T));
          for (std::size_t i = 0; i < count; ++i) quotients[i] /= static_cast<T>(by);
          use(std::as_bytes(std::span(quotients).first(count)));
          slice = slice.subspan(count * sizeof(T));
        }
      });
    });
  };
}

}  // namespace

Slices slices_of(SlicedReader& reader) {
  return [&reader](std::size_t input, const std::function<void(std::span<const std::byte>)>& use) {
    reader.read(reader.module().input(train_entry, input), 0, use);
  };
}

std::vector<std::size_t> checkpoint_inputs(const Setup& setup) {
  const std::vector<std::size_t> left_out = guard_inputs(setup.roles);
  std::vector<std::size_t> inputs;
  for (std::size_t i = 0; i < setup.training->inputs.size(); ++i) {
    const Group group = setup.training->inputs[i].group;
    if ((group == Group::params || group == Group::state) && !contains(left_out, i)) inputs.push_back(i);
  }
  return inputs;
}

void write_checkpoint(const RunFolder& folder, const Setup& setup, RunState state, const Slices& slices) {
  const std::string& config = setup.loaded.resolved;
  state.seed = setup.spec().seed;
  state.data_seed = data::seed_of(setup.spec().data, setup.spec().seed);
  state.batch_size = setup.batch.global;
  state.train_examples = setup.batch.dataset;
  state.config_hash = hash_hex(std::as_bytes(std::span(config.data(), config.size())));
  state.checksums.clear();
  folder.commit_checkpoint(state.step, [&](const Directory& into) {
    std::map<std::string_view, std::size_t> parameters, optimizer, averages;
    for (const std::size_t input : checkpoint_inputs(setup)) {
      const Input& found = setup.training->inputs[input];
      (found.group == Group::params ? parameters : optimizer).emplace(found.name, input);
    }
    for (std::size_t i = 0; i < setup.roles.ema.size(); ++i) {
      // Before the first update there is no average.
      averages.emplace(setup.model.parameters[i].name,
                       state.updates > 0 ? setup.roles.ema[i] : setup.roles.parameters[i]);
    }
    write_file(into, "params.safetensors", *setup.training, parameters, slices, state);
    write_file(into, "optimizer.safetensors", *setup.training, optimizer, slices, state);
    if (const auto& ema = setup.spec().train.ema) {
      const Slices debiased = divided(slices, setup.model.dtype, ema_correction(*ema, state.updates));
      write_file(into, "ema.safetensors", *setup.training, averages, debiased, state);
    }
    const std::string text = to_json(state);
    FileWriter file(into.place("state.json"));
    file.write(std::as_bytes(std::span(text)));
    file.close();
  });
}

CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name) {
  return load_file(checkpoint, name, load_run_state(checkpoint));
}

CheckpointFile load_parameters(const std::filesystem::path& checkpoint) {
  return load_file(checkpoint, "params.safetensors");
}

RunState load_run_state(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint / "state.json";
  const data::Bytes file = open(path);
  const std::string text(reinterpret_cast<const char*>(file.data()), file.size());
  file.check_intact();
  return parse_run_state(text, path.string());
}

Checkpoint load_checkpoint(const std::filesystem::path& folder) {
  Checkpoint checkpoint{folder, load_run_state(folder), {}, {}};
  checkpoint.parameters = load_file(folder, "params.safetensors", checkpoint.state);
  checkpoint.optimizer = load_file(folder, "optimizer.safetensors", checkpoint.state);
  // What is derived from these, such as ema.safetensors.
  for (const auto& [name, checksum] : checkpoint.state.checksums) {
    if (name != "params.safetensors" && name != "optimizer.safetensors") load_file(folder, name, checkpoint.state);
  }
  return checkpoint;
}

void write_group(Module& module, std::size_t entry, Group group, std::span<const TensorView> tensors,
                 const std::string& file, std::span<const std::size_t> left_out) {
  const Program& program = module.program(entry);
  std::map<std::string_view, const TensorView*> given;
  for (const TensorView& tensor : tensors) given[tensor.name] = &tensor;
  for (const auto& [name, tensor] : given) {
    const Input* const input = program.find_input(name);
    if (input != nullptr && input->group == group) continue;
    fail_data("'" + file + "' has a tensor '" + std::string(name) + "', which this model does not have",
              "it is of another model or optimizer");
  }
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const Input& input = program.inputs[i];
    if (input.group != group || contains(left_out, i)) continue;
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

void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint) {
  const std::vector<std::size_t> left_out = guard_inputs(setup.roles);
  write_group(module, train_entry, Group::params, checkpoint.parameters.tensors, checkpoint.parameters.path);
  write_group(module, train_entry, Group::state, checkpoint.optimizer.tensors, checkpoint.optimizer.path, left_out);
  checkpoint.parameters.file.check_intact();
  checkpoint.optimizer.file.check_intact();
}

CheckpointFile load_weights(const std::filesystem::path& checkpoint, spec::Weights weights) {
  std::error_code ignored;
  const bool averaged =
      weights == spec::Weights::ema && std::filesystem::exists(checkpoint / "ema.safetensors", ignored);
  return averaged ? load_file(checkpoint, "ema.safetensors") : load_parameters(checkpoint);
}

}  // namespace pmaptrain::train
