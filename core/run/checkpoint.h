// The files of a checkpoint: a run's parameters, optimizer state and progress.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/files/safetensors.h"
#include "core/run/first_process.h"
#include "core/run/run_folder.h"
#include "core/run/run_state.h"

namespace pmaptrain::run {

// A safetensors file of a checkpoint. The elements of `tensors` are views of the file.
struct CheckpointFile {
  std::string path;
  data::Bytes file;
  std::vector<TensorView> tensors;
  std::optional<std::int64_t> members;  // the first dimension of every tensor; none without an ensemble
  // The tensors of a member, without the dimension of members. Throws Error (data) if a tensor lacks that dimension.
  std::vector<TensorView> of_member(std::int64_t member) const;
};

// Opens a file of a checkpoint and compares it with its checksum in state.json. Throws Error (data).
CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name);
// Loads params.safetensors.
CheckpointFile load_parameters(const std::filesystem::path& checkpoint);
// The part of a checkpoint that evaluation and prediction need.
struct CheckpointWeights {
  std::filesystem::path folder;
  RunState state;
  CheckpointFile parameters;  // ema.safetensors if requested and present, else params.safetensors
};
// Loads the weights of a run's checkpoint: "last", "best" or a step. Everything comes from one checkpoint, also while
// the run goes on: if the run removes the folder meanwhile, loads the checkpoint that has the name by then. Throws what
// find_checkpoint() throws, and Error (data). Of several processes, all get those that process 0 has loaded.
CheckpointWeights load_weights(const std::filesystem::path& run, const std::string& which, spec::Weights weights,
                               const FirstProcess& first = {});

// A complete checkpoint.
struct Checkpoint {
  std::filesystem::path folder;
  RunState state;
  CheckpointFile parameters, optimizer;
  // Closes the files, so that removing them frees space on the disk.
  void release() { parameters = optimizer = {}; }
};
// Throws Error (data) if any file of the checkpoint is damaged.
Checkpoint load_checkpoint(const std::filesystem::path& folder);
// In every process the checkpoint that process 0 has loaded. `own` is that checkpoint in process 0, and is ignored in
// the others. Throws what FirstProcess::bytes() throws.
Checkpoint checkpoint_of(const FirstProcess& first, Checkpoint own);

// Loads only the state of a checkpoint. Throws Error (data).
RunState load_run_state(const std::filesystem::path& checkpoint);

// The name of the folder in checkpoints/ with the best parameters of every member: a regular checkpoint if all members
// were best at the same step, else best-NNNNNNNN. The folder has the parameters of its last step for members that have
// no best evaluation. Empty if no member has one.
std::string best_folder(const RunState& state);
// Whether checkpoints/best, whose state this is, has the best parameters of the member. If not, it has the parameters
// of the member's last step.
bool has_best(const RunState& state, std::int64_t member);
// "step-00000100": the step of the member's best parameters; empty if the member has no best parameters.
std::string best_checkpoint(const RunState& state, std::int64_t member);
// Throws Error (usage) if the member has no best parameters. `last` is the option or key that selects its last ones.
void check_has_best(const RunState& state, std::int64_t member, const std::string& last);

// The checkpoint that commands use by default: "best" if train.checkpoint.best is configured and the checkpoint exists
// (for this member, if one is given), else "last". Throws Error (data).
std::string default_checkpoint(const spec::Spec& spec, const std::filesystem::path& run, MemberNumber member);
// "step-00000100": the last checkpoint of a run; none if no checkpoint can be read.
std::optional<std::string> last_checkpoint(const std::filesystem::path& run);

}  // namespace pmaptrain::run
