// The files of a checkpoint: a run's parameters, optimizer state and progress.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/run/files/safetensors.h"
#include "core/run/run_folder.h"
#include "core/run/run_state.h"

namespace pmaptrain::train {

// A safetensors file of a checkpoint; the tensors' elements are the file's.
struct CheckpointFile {
  std::string path;
  data::Bytes file;
  std::vector<TensorView> tensors;
  std::optional<std::int64_t> members;  // the first dimension of every tensor; none without an ensemble
  // The tensors of a member, in their own shapes. Throws Error (data) where a tensor does not have the dimension.
  std::vector<TensorView> of_member(std::int64_t member) const;
};

// Opens a file of a checkpoint's folder and compares it with the checksum in state.json. Throws Error (data).
CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name);
// params.safetensors
CheckpointFile load_parameters(const std::filesystem::path& checkpoint);
// What evaluation and prediction take from a checkpoint.
struct CheckpointWeights {
  std::filesystem::path folder;
  RunState state;
  CheckpointFile
      parameters;  // ema.safetensors, where that is asked for and the checkpoint has it, else params.safetensors
};
// Of a run's checkpoint, "last", "best" or a step. The run may be under way: all is of one checkpoint, and where that
// is removed meanwhile, of the one that has its name by then. Throws what find_checkpoint() throws, and Error (data).
CheckpointWeights load_weights(const std::filesystem::path& run, const std::string& which, spec::Weights weights);

// A whole checkpoint.
struct Checkpoint {
  std::filesystem::path folder;
  RunState state;
  CheckpointFile parameters, optimizer;
  // Gives the files back, so that the disk has their space when they are removed.
  void release() { parameters = optimizer = {}; }
};
// Throws Error (data) if any of its files is damaged.
Checkpoint load_checkpoint(const std::filesystem::path& folder);

// The state of a checkpoint alone. Throws Error (data).
RunState load_run_state(const std::filesystem::path& checkpoint);

// The folder in checkpoints/ with the best of every member: a checkpoint where all of these are of one step, else
// best-NNNNNNNN. Members that have no best yet are in it as they were at its last step. Empty where no member has one.
std::string best_folder(const RunState& state);
// Whether checkpoints/best, of which this is the state, has best parameters of the member. Otherwise it has those of
// its last step.
bool has_best(const RunState& state, std::int64_t member);
// "step-00000100": the step of the member's best parameters; empty where it has none.
std::string best_checkpoint(const RunState& state, std::int64_t member);
// Throws Error (usage) where it has none. `last` is the option or key by which its last ones are chosen.
void check_has_best(const RunState& state, std::int64_t member, const std::string& last);

// The checkpoint that is meant where none is named: "best" where train.checkpoint.best is configured and it is there,
// of this member where one is meant, else "last". Throws Error (data).
std::string default_checkpoint(const spec::Spec& spec, const std::filesystem::path& run, MemberNumber member);
// "step-00000100": a run's last one; none where there is none that can be read.
std::optional<std::string> last_checkpoint(const std::filesystem::path& run);

}  // namespace pmaptrain::train
