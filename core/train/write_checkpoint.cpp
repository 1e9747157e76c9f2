#include "core/train/write_checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string_view>

#include "core/base/text.h"
#include "core/input/open.h"
#include "core/setup/start.h"

namespace pmaptrain::train {
namespace {

std::string list_of(const std::vector<double>& numbers) {
  std::vector<std::string> items;
  items.reserve(numbers.size());
  for (const double number : numbers) items.push_back(exact(number));
  return "[" + join(items, ", ") + "]";
}

// Writes inputs as a file of a checkpoint, under the names of their tensors, and stores its checksum in the state.
void write_file(const run::Directory& into, const std::string& name, std::span<const Variable> all,
                const std::map<std::string_view, std::size_t>& inputs, const ReadSlices& slices, run::RunState& state,
                const std::map<std::string, std::string>& metadata = {}) {
  std::vector<run::TensorView> tensors;
  for (const auto& [tensor, input] : inputs) {
    const Type& type = all[input].type;
    Shape shape = type.shape;
    if (state.is_ensemble) shape.insert(shape.begin(), std::ssize(state.members));
    tensors.push_back({std::string(tensor), type.dtype, std::move(shape), {}});
  }
  run::FileWriter file(into.place(name));
  const auto write_elements = [&](const run::TensorView& tensor) {
    for (std::int64_t member = 0; member < std::ssize(state.members); ++member) {
      slices(inputs.at(tensor.name), member, [&](std::span<const std::byte> slice) { file.write(slice); });
    }
  };
  run::write_safetensors(file, tensors, write_elements, metadata);
  file.close();
  state.checksums[name] = "xxh3:" + file.checksum();
}

// Divides the elements by a number in type T, as evaluation programs do, so the bits are equal.
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

// The debiased averages of parameters. Before its first update a member has none, and its parameters take their place.
ReadSlices averages(const setup::Setup& setup, const run::RunState& state, const ReadSlices& slices) {
  return [&](std::size_t parameter, std::int64_t member, const UseSlice& use) {
    const std::int64_t updates = state.members[static_cast<std::size_t>(member)].updates;
    const std::vector<std::size_t>& parameters = setup.roles.parameters;
    const auto at = std::find(parameters.begin(), parameters.end(), parameter) - parameters.begin();
    const std::size_t input = updates > 0 ? setup.roles.ema[static_cast<std::size_t>(at)] : parameter;
    if (input == parameter) return slices(parameter, member, use);  // a running statistic, or frozen
    const double by = setup::ema_correction(*setup.member_spec(member).train.ema, updates);
    slices(input, member, [&](std::span<const std::byte> slice) {
      dispatch_floating_arithmetic(setup.model.dtype, [&]<class T>() { use_divided(slice, static_cast<T>(by), use); });
    });
  };
}

}  // namespace

std::map<std::string, std::string> metadata_of(const run::RunState& state, const spec::DataSpec& data) {
  const auto& targets = state.encoding.targets;
  if (!targets) return {};
  std::map<std::string, std::string> metadata{{"target_mean", list_of(targets->mean)},
                                              {"target_std", list_of(targets->std)}};
  std::vector<std::string> logs;
  for (const data::TargetScale scale : spec::target_scales(data, std::ssize(targets->mean))) {
    logs.emplace_back(scale == data::TargetScale::log ? "true" : "false");
  }
  if (std::find(logs.begin(), logs.end(), "true") != logs.end()) metadata["target_log"] = "[" + join(logs, ", ") + "]";
  return metadata;
}

ReadSlices read_slices_of(setup::SlicedReader& reader) {
  return [&reader](std::size_t input, std::int64_t member, const UseSlice& use) {
    reader.read(reader.module().input(setup::train_entry, input), {reader.module().own_device(), member}, use);
  };
}

std::vector<std::size_t> checkpoint_inputs(const setup::Setup& setup) {
  std::vector<std::size_t> inputs;
  const std::vector<Variable> variables = variables_of(*setup.training);
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Group group = variables[i].group;
    if (is_kept(group) && !setup.roles.is_of_guard(i)) inputs.push_back(i);
  }
  return inputs;
}

std::string config_hash(const setup::Setup& setup) {
  return run::hash_hex(std::as_bytes(std::span(setup.loaded.resolved)));
}

void write_files(const run::Directory& into, const setup::Setup& setup, run::RunState state, const ReadSlices& slices) {
  for (std::size_t m = 0; m < state.members.size(); ++m) {
    const spec::Spec& spec = setup.member_spec(static_cast<std::int64_t>(m));
    state.members[m].seed = spec.seed;
    state.members[m].data_seed = input::seed_of(spec.data, spec.seed);
    const auto& schedule = setup.members[m].optimizer.schedule;
    state.members[m].schedule_began = schedule ? schedule->began_at : std::nullopt;
  }
  state.input = {setup.model.input.dtype, setup.model.input.shape};
  state.target = {setup.model.target.dtype, setup.model.target.shape};
  state.contents = setup.contents;
  state.batch_size = setup.batch.global;
  state.train_examples = setup.batch.dataset;
  state.config_hash = config_hash(setup);
  state.changes = setup.loaded.changes;
  state.checksums.clear();
  const std::vector<Variable> variables = variables_of(*setup.training);
  std::map<std::string_view, std::size_t> parameters, optimizer;
  for (const std::size_t input : checkpoint_inputs(setup)) {
    const Variable& found = variables[input];
    (is_of_model(found.group) ? parameters : optimizer).emplace(found.name, input);
  }
  write_file(into, "params.safetensors", variables, parameters, slices, state,
             metadata_of(state, setup.member_spec().data));
  write_file(into, "optimizer.safetensors", variables, optimizer, slices, state);
  if (setup.spec().train.ema) {
    write_file(into, "ema.safetensors", variables, parameters, averages(setup, state, slices), state,
               metadata_of(state, setup.member_spec().data));
  }
  const std::string text = run::to_json(state);
  run::FileWriter file(into.place("state.json"));
  file.write(std::as_bytes(std::span(text)));
  file.close();
}

void write_checkpoint(const run::RunFolder& folder, const setup::Setup& setup, const run::RunState& state,
                      const ReadSlices& slices, const std::string& best) {
  const auto fill = [&](const run::Directory& into) { write_files(into, setup, state, slices); };
  folder.commit_checkpoint(state.step, fill, best);
}

void write_best(const run::RunFolder& folder, const setup::Setup& setup, run::RunState state,
                const ReadSlices& slices) {
  const run::Checkpoint before = run::load_checkpoint(run::find_checkpoint(folder.present_path(), "best"));
  std::vector<std::map<std::string, std::span<const std::byte>>> kept(state.members.size());  // tensors by member
  for (std::size_t m = 0; m < kept.size(); ++m) {
    run::MemberState& member = state.members[m];
    if (!member.best || member.best->step == state.step) continue;
    member = before.state.members.at(m);
    for (const run::CheckpointFile* file : {&before.parameters, &before.optimizer}) {
      for (const run::TensorView& tensor : file->of_member(static_cast<std::int64_t>(m)))
        kept[m][tensor.name] = tensor.bytes;
    }
  }
  const std::vector<Variable> all = variables_of(*setup.training);
  const ReadSlices composed = [&](std::size_t input, std::int64_t member, const UseSlice& use) {
    const auto& tensors = kept[static_cast<std::size_t>(member)];
    if (tensors.empty()) return slices(input, member, use);
    use(tensors.at(std::string(all[input].name)));
  };
  folder.commit_best(state.step, [&](const run::Directory& into) { write_files(into, setup, state, composed); });
  before.parameters.file.check_intact();
  before.optimizer.file.check_intact();
}

}  // namespace pmaptrain::train
