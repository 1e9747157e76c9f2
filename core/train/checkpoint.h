// A run's parameters, optimizer state and progress, to and from the files of a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/train/run_folder.h"
#include "core/train/run_state.h"
#include "core/train/safetensors.h"
#include "core/train/setup.h"
#include "core/train/values.h"

namespace pmaptrain::train {

// ---- writing -------------------------------------------------------------------------------------------------------

// Gives the bytes of a member's input of the training program to `use`, slice by slice in order.
using UseSlice = std::function<void(std::span<const std::byte>)>;
using Slices = std::function<void(std::size_t input, std::int64_t member, const UseSlice& use)>;

// Slices of what device 0 of the module's training entry has now. The reader outlives it.
Slices slices_of(SlicedReader& reader);

// The inputs of the training program that a checkpoint has: parameters and state, but for the guard's.
std::vector<std::size_t> checkpoint_inputs(const Setup& setup);

// XXH3 of the run's resolved config, as 16 hexadecimal digits.
std::string config_hash(const Setup& setup);

// Writes the files of a checkpoint: params.safetensors, optimizer.safetensors (state), ema.safetensors where there is a
// moving average (debiased, by the parameters' names), and state.json. The tensors of an ensemble have its members as
// their first dimension. Fills in the parts of `state` that follow from the setup and the files. No tensor is copied as
// a whole on the way to its file. Throws Error (failed).
void write_files(const Directory& into, const Setup& setup, RunState state, const Slices& slices);
// Commits checkpoints/step-NNNNNNNN with them.
void write_checkpoint(const RunFolder& folder, const Setup& setup, const RunState& state, const Slices& slices);

// The folder in checkpoints/ with the best of every member: a checkpoint where all of these are of one step, else
// best-NNNNNNNN. Members that have no best yet are in it as they were at its last step. Empty where no member has one.
std::string best_folder(const RunState& state);
// Commits best-NNNNNNNN after an evaluation that was the best of some members: these, and those that have no best yet,
// as `slices` give them, and the others as checkpoints/best has them. Throws Error.
void write_best(const RunFolder& folder, const Setup& setup, RunState state, const Slices& slices);

// ---- reading -------------------------------------------------------------------------------------------------------

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

// Gives every input of `group` of an entry its tensor, in one member of the module, but for those `left_out`. Throws
// Error (data), naming `file`, when one is missing, is left over, or has another element type or shape.
void write_group(Module& module, std::int64_t member, std::size_t entry, Group group,
                 std::span<const TensorView> tensors, const std::string& file,
                 std::span<const std::size_t> left_out = {});

// Gives a member of the module's training entry all its values of a checkpoint. Throws Error (data).
void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint, std::int64_t member);

}  // namespace pmaptrain::train
