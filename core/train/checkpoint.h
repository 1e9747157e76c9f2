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

// Gives the bytes of an input of the training program to `use`, slice by slice in order.
using Slices = std::function<void(std::size_t input, const std::function<void(std::span<const std::byte>)>& use)>;

// Slices of what device 0 of the module's training entry has now. The reader outlives it.
Slices slices_of(SlicedReader& reader);

// The inputs of the training program that a checkpoint has: parameters and state, but for the guard's.
std::vector<std::size_t> checkpoint_inputs(const Setup& setup);

// Commits checkpoints/step-NNNNNNNN: params.safetensors, optimizer.safetensors (state), ema.safetensors where there is
// a moving average (debiased, by the parameters' names), and state.json. Fills in the parts of `state` that follow from
// the setup and the files. No tensor is copied as a whole on the way to its file. Throws Error (failed).
void write_checkpoint(const RunFolder& folder, const Setup& setup, RunState state, const Slices& slices);

// ---- reading -------------------------------------------------------------------------------------------------------

// A safetensors file of a checkpoint; the tensors' elements are the file's.
struct CheckpointFile {
  std::string path;
  data::Bytes file;
  std::vector<TensorView> tensors;
};

// Opens a file of a checkpoint's folder and compares it with the checksum in state.json. Throws Error (data).
CheckpointFile load_file(const std::filesystem::path& checkpoint, const std::string& name);
// params.safetensors
CheckpointFile load_parameters(const std::filesystem::path& checkpoint);
// ema.safetensors, where those are asked for and there, else params.safetensors.
CheckpointFile load_weights(const std::filesystem::path& checkpoint, spec::Weights weights);

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

// Gives every input of `group` of an entry its tensor, but for those `left_out`. Throws Error (data), naming `file`,
// when one is missing, is left over, or has another element type or shape.
void write_group(Module& module, std::size_t entry, Group group, std::span<const TensorView> tensors,
                 const std::string& file, std::span<const std::size_t> left_out = {});

// Gives the module's training entry all values of a checkpoint. Throws Error (data).
void restore(Module& module, const Setup& setup, const Checkpoint& checkpoint);

}  // namespace pmaptrain::train
