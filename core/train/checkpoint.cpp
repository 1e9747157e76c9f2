#include "core/train/checkpoint.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/base/text.h"
#include "core/data/open.h"
#include "core/train/file_system.h"
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

// What `load` gives of the folder of a run's checkpoint. The run may be under way: where it removes the folder
// meanwhile, `load` is called anew with the one that has its name by then.
template <class Load>
auto of_one_checkpoint(const std::filesystem::path& run, const std::string& which, Load&& load) {
  while (true) {
    const std::filesystem::path folder = find_checkpoint(run, which);
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    const Directory opened(Descriptor(file_system().open_at(AT_FDCWD, folder.string(), flags)), folder);
    if (opened.fd() < 0 && errno == ENOENT) continue;
    try {
      return load(folder);
    } catch (const Error& error) {
      if (error.status() != ExitStatus::data || opened.whereabouts().in_place) throw;
    }
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
  CheckpointFile loaded{path.string(), open(path), {}, {}};
  if (state.is_ensemble) loaded.members = std::ssize(state.members);
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

std::string list_of(const std::vector<double>& numbers) {
  std::vector<std::string> items;
  for (const double number : numbers) items.push_back(exact(number));
  return "[" + join(items, ", ") + "]";
}

// What a program that reads the parameters alone must know of them: outputs become targets by these numbers.
std::map<std::string, std::string> metadata_of(const RunState& state) {
  const auto& targets = state.encoding.targets;
  if (!targets) return {};
  return {{"target_mean", list_of(targets->mean)}, {"target_std", list_of(targets->std)}};
}

// Writes a file of inputs, by the names of their tensors, into a checkpoint, and its checksum into the state.
void write_file(const Directory& into, const std::string& name, const Program& program,
                const std::map<std::string_view, std::size_t>& inputs, const Slices& slices, RunState& state,
                const std::map<std::string, std::string>& metadata = {}) {
  std::vector<TensorView> tensors;
  for (const auto& [tensor, input] : inputs) {
    const Type& type = program.type(program.inputs[input].value);
    Shape shape = type.shape;
    if (state.is_ensemble) shape.insert(shape.begin(), std::ssize(state.members));
    tensors.push_back({std::string(tensor), type.dtype, std::move(shape), {}});
  }
  FileWriter file(into.place(name));
  const auto write_elements = [&](const TensorView& tensor) {
    for (std::int64_t member = 0; member < std::ssize(state.members); ++member) {
      slices(inputs.at(tensor.name), member, [&](std::span<const std::byte> slice) { file.write(slice); });
    }
  };
  write_safetensors(file, tensors, write_elements, metadata);
  file.close();
  state.checksums[name] = "xxh3:" + file.checksum();
}

// The elements divided by a number, as the evaluation divides them.
template <class T>
void use_divided(std::span<const std::byte> slice, T by, const UseSlice& use) {
  std::array<T, 4096> quotients;
  while (!slice.empty()) {
    const std::size_t count = std::min(quotients.size(), slice.size() / sizeof(T));
    std::memcpy(quotients.data(), slice.data(), count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) quotients[i] /= by;
    use(std::as_bytes(std::span(quotients).first(count)));
    slice = slice.subspan(count * sizeof(T));
  }
}

// Of the parameters, the debiased averages. Before its first update a member has none, and the parameters stand in.
Slices averages(const Setup& setup, const RunState& state, const Slices& slices) {
  return [&](std::size_t parameter, std::int64_t member, const UseSlice& use) {
    const std::int64_t updates = state.members[static_cast<std::size_t>(member)].updates;
    const std::vector<std::size_t>& parameters = setup.roles.parameters;
    const auto at = std::find(parameters.begin(), parameters.end(), parameter) - parameters.begin();
    const std::size_t input = updates > 0 ? setup.roles.ema[static_cast<std::size_t>(at)] : parameter;
    const double by = ema_correction(*setup.member_spec(member).train.ema, updates);
    slices(input, member, [&](std::span<const std::byte> slice) {
      dispatch_floating_arithmetic(setup.model.dtype, [&]<class T>() { use_divided(slice, static_cast<T>(by), use); });
    });
  };
}

}  // namespace

Slices slices_of(SlicedReader& reader) {
  return [&reader](std::size_t input, std::int64_t member, const UseSlice& use) {
    reader.read(reader.module().input(train_entry, input), {0, member}, use);
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

std::string config_hash(const Setup& setup) { return hash_hex(std::as_bytes(std::span(setup.loaded.resolved))); }

void write_files(const Directory& into, const Setup& setup, RunState state, const Slices& slices) {
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const spec::Spec& spec = setup.member_spec(static_cast<std::int64_t>(m));
    state.members[m].seed = spec.seed;
    state.members[m].data_seed = data::seed_of(spec.data, spec.seed);
    const auto& schedule = setup.members[m].optimizer.schedule;
    state.members[m].schedule_began = schedule ? schedule->began : std::nullopt;
  }
  state.input = {setup.model.input.dtype, setup.model.input.shape};
  state.target = {setup.model.target.dtype, setup.model.target.shape};
  state.batch_size = setup.batch.global;
  state.train_examples = setup.batch.dataset;
  state.config_hash = config_hash(setup);
  state.changes = setup.loaded.changes;
  state.checksums.clear();
  std::map<std::string_view, std::size_t> parameters, optimizer;
  for (const std::size_t input : checkpoint_inputs(setup)) {
    const Input& found = setup.training->inputs[input];
    (found.group == Group::params ? parameters : optimizer).emplace(found.name, input);
  }
  write_file(into, "params.safetensors", *setup.training, parameters, slices, state, metadata_of(state));
  write_file(into, "optimizer.safetensors", *setup.training, optimizer, slices, state);
  if (setup.spec().train.ema) {
    write_file(into, "ema.safetensors", *setup.training, parameters, averages(setup, state, slices), state,
               metadata_of(state));
  }
  const std::string text = to_json(state);
  FileWriter file(into.place("state.json"));
  file.write(std::as_bytes(std::span(text)));
  file.close();
}

void write_checkpoint(const RunFolder& folder, const Setup& setup, const RunState& state, const Slices& slices) {
  folder.commit_checkpoint(state.step, [&](const Directory& into) { write_files(into, setup, state, slices); });
}

std::string best_folder(const RunState& state) {
  std::int64_t last = -1;
  for (const MemberState& member : state.members) {
    if (member.best) last = std::max(last, member.best->step);
  }
  if (last < 0) return "";
  const bool of_one_step = std::all_of(state.members.begin(), state.members.end(), [&](const MemberState& member) {
    return !member.best || member.best->step == last;
  });
  return of_one_step ? checkpoint_name(last) : best_name(last);
}

void write_best(const RunFolder& folder, const Setup& setup, RunState state, const Slices& slices) {
  const Checkpoint before = load_checkpoint(folder.present_path() / "checkpoints/best");
  std::vector<std::map<std::string, std::span<const std::byte>>> kept(state.members.size());  // tensors by member
  for (std::size_t m = 0; m < kept.size(); ++m) {
    MemberState& member = state.members[m];
    if (!member.best || member.best->step == state.step) continue;
    member = before.state.members.at(m);
    for (const CheckpointFile* file : {&before.parameters, &before.optimizer}) {
      for (const TensorView& tensor : file->of_member(static_cast<std::int64_t>(m)))
        kept[m][tensor.name] = tensor.bytes;
    }
  }
  const Slices composed = [&](std::size_t input, std::int64_t member, const UseSlice& use) {
    const auto& tensors = kept[static_cast<std::size_t>(member)];
    if (tensors.empty()) return slices(input, member, use);
    use(tensors.at(setup.training->inputs[input].name));
  };
  folder.commit_best(state.step, [&](const Directory& into) { write_files(into, setup, state, composed); });
  before.parameters.file.check_intact();
  before.optimizer.file.check_intact();
}

std::vector<TensorView> CheckpointFile::of_member(std::int64_t member) const {
  if (!members) return tensors;
  std::vector<TensorView> found = tensors;
  for (TensorView& tensor : found) {
    if (tensor.shape.empty() || tensor.shape.front() != *members) {
      fail_data("'" + path + "': '" + tensor.name + "' is " + to_string(tensor.shape) +
                    "; its first dimension is not " + std::to_string(*members) + ", the members of the ensemble",
                "use another checkpoint of the run");
    }
    const std::size_t size = tensor.bytes.size() / static_cast<std::size_t>(*members);
    tensor.shape.erase(tensor.shape.begin());
    tensor.bytes = tensor.bytes.subspan(static_cast<std::size_t>(member) * size, size);
  }
  return found;
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

bool has_best(const RunState& state, std::int64_t member) {
  const auto index = static_cast<std::size_t>(member);
  return index < state.members.size() && state.members[index].best.has_value();
}

std::string best_checkpoint(const RunState& state, std::int64_t member) {
  if (!has_best(state, member)) return "";
  return checkpoint_name(state.members[static_cast<std::size_t>(member)].best->step);
}

void check_has_best(const RunState& state, std::int64_t member, const std::string& last) {
  if (has_best(state, member)) return;
  throw Error(ExitStatus::usage, Diagnostic{"usage",
                                            {},
                                            "member " + std::to_string(member) +
                                                " has no best checkpoint: no evaluation gave it a best value",
                                            last + " takes the parameters after its last step",
                                            {}});
}

std::string default_checkpoint(const spec::Spec& spec, const std::filesystem::path& run, MemberNumber member) {
  std::error_code ignored;
  const std::filesystem::path best = run / "checkpoints/best/state.json";
  if (!spec.train.checkpoint.best || !std::filesystem::exists(best, ignored)) return "last";
  if (!member) return "best";
  return has_best(of_one_checkpoint(run, "best", load_run_state), *member) ? "best" : "last";
}

std::optional<std::string> last_checkpoint(const std::filesystem::path& run) {
  try {
    return checkpoint_name(of_one_checkpoint(run, "last", load_run_state).step);
  } catch (const Error&) {
    return std::nullopt;
  }
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

void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const TensorView> tensors, const std::string& file, std::span<const std::size_t> left_out) {
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
    module.wait(module.write(module.input(input.name), {every_device, member}, tensor.bytes));
  }
}

void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint, std::int64_t member) {
  const auto& [folder, state, parameters, optimizer] = checkpoint;
  write_group(module, member, train_entry, Group::params, parameters.of_member(member), parameters.path);
  write_group(module, member, train_entry, Group::state, optimizer.of_member(member), optimizer.path,
              guard_inputs(setup.roles));
  parameters.file.check_intact();
  optimizer.file.check_intact();
}

CheckpointWeights load_weights(const std::filesystem::path& run, const std::string& which, spec::Weights weights) {
  return of_one_checkpoint(run, which, [&](const std::filesystem::path& folder) {
    CheckpointWeights loaded{folder, load_run_state(folder), {}};
    // Whether there are averages is what the state says, not whether their file is there.
    const bool averaged = weights == spec::Weights::ema && loaded.state.checksums.contains("ema.safetensors");
    loaded.parameters = load_file(folder, averaged ? "ema.safetensors" : "params.safetensors", loaded.state);
    return loaded;
  });
}

}  // namespace pmaptrain::train
