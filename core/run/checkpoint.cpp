#include "core/run/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>

#include "core/base/text.h"
#include "core/input/open.h"
#include "core/run/files/file_system.h"

namespace pmaptrain::run {
namespace {

constexpr std::string_view not_complete = "the checkpoint is not complete: use another one of the run";

data::Bytes open(const std::filesystem::path& path) {
  try {
    return data::map_file(path.string());
  } catch (const Error& error) {
    throw Error(error.status(),
                Diagnostic{"data", {}, error.diagnostics().front().message, std::string(not_complete), {}});
  }
}

// Returns what `load` returns for the folder of a run's checkpoint. If a running process removes the folder meanwhile,
// calls `load` again with the folder that has the name by then.
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

// What a checkpoint with this state has in `file`.
CheckpointFile view_file(std::string path, data::Bytes file, const RunState& state) {
  CheckpointFile loaded{std::move(path), std::move(file), {}, {}};
  if (state.is_ensemble) loaded.members = std::ssize(state.members);
  loaded.tensors = view_safetensors(loaded.file, loaded.path);
  return loaded;
}

// The file that process 0 has loaded; it has compared it with its checksum.
CheckpointFile file_of(const FirstProcess& first, const CheckpointFile& own, const RunState& state) {
  std::string path = first.text([&] { return own.path; });
  return view_file(std::move(path), first.bytes([&] { return own.file; }), state);
}

RunState state_of(const FirstProcess& first, const RunState& own) {
  return parse_run_state(first.text([&] { return to_json(own); }), "state.json");
}

CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name, const RunState& state) {
  const std::filesystem::path path = checkpoint / name;
  data::Bytes file = open(path);
  const std::string found = "xxh3:" + hash_hex(file.view());
  file.check_intact();
  const auto expected = state.checksums.find(name);
  if (expected == state.checksums.end() || expected->second != found) {
    fail_data("'" + path.string() + "' is damaged: it does not have the checksum that state.json gives",
              "use another checkpoint of the run");
  }
  return view_file(path.string(), std::move(file), state);
}

}  // namespace

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
  fail_usage(fmt::format("member {} has no best checkpoint: no evaluation gave it a best value", member),
             last + " takes the parameters after its last step");
}

std::string default_checkpoint(const spec::Spec& spec, const std::filesystem::path& run, MemberNumber member) {
  std::error_code ignored;
  const std::optional<std::filesystem::path> best = checkpoint_folder(run, "best");
  if (!spec.train.checkpoint.best || !best || !std::filesystem::exists(*best / "state.json", ignored)) return "last";
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
  // Checks the files that are derived from the others, such as ema.safetensors.
  for (const auto& [name, checksum] : checkpoint.state.checksums) {
    if (name != "params.safetensors" && name != "optimizer.safetensors") load_file(folder, name, checkpoint.state);
  }
  return checkpoint;
}

Checkpoint checkpoint_of(const FirstProcess& first, Checkpoint own) {
  if (first.is_alone()) return own;
  Checkpoint found{first.text([&] { return own.folder.string(); }), state_of(first, own.state), {}, {}};
  found.parameters = file_of(first, own.parameters, found.state);
  found.optimizer = file_of(first, own.optimizer, found.state);
  return found;
}

namespace {

CheckpointWeights own_weights(const std::filesystem::path& run, const std::string& which, spec::Weights weights) {
  return of_one_checkpoint(run, which, [&](const std::filesystem::path& folder) {
    CheckpointWeights loaded{folder, load_run_state(folder), {}};
    // state.json, not the existence of the file, says whether there are averages.
    const bool averaged = weights == spec::Weights::ema && loaded.state.checksums.contains("ema.safetensors");
    loaded.parameters = load_file(folder, averaged ? "ema.safetensors" : "params.safetensors", loaded.state);
    return loaded;
  });
}

}  // namespace

CheckpointWeights load_weights(const std::filesystem::path& run, const std::string& which, spec::Weights weights,
                               const FirstProcess& first) {
  CheckpointWeights own;
  if (first.is_this()) own = own_weights(run, which, weights);
  if (first.is_alone()) return own;
  CheckpointWeights found{first.text([&] { return own.folder.string(); }), state_of(first, own.state), {}};
  found.parameters = file_of(first, own.parameters, found.state);
  return found;
}

}  // namespace pmaptrain::run
