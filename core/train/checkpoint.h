// A run's parameters and optimizer state, to and from files and modules.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/train/run_folder.h"
#include "core/train/safetensors.h"
#include "core/train/setup.h"
#include "core/train/values.h"

namespace pmaptrain::train {

// Gives every input of `group` of an entry its tensor. Throws Error (data), naming `file`, when one is missing, is left
// over, or has another element type or shape.
void write_group(Module& module, std::size_t entry, Group group, std::span<const TensorView> tensors,
                 const std::string& file);

struct Progress {
  std::int64_t step = 0;            // steps done
  std::int64_t example_cursor = 0;  // positions of the sample stream consumed
  std::int64_t steps_skipped = 0;   // of the steps, those that were not finite and changed nothing
};

// Commits checkpoints/step-NNNNNNNN: params.safetensors, optimizer.safetensors (all state inputs) and state.json (step,
// example cursor, steps skipped, seeds, a hash of the config, checksums of the two files), of what device 0 of the
// module's first entry holds. No tensor is copied as a whole on the way to its file. Throws Error (failed).
void save_checkpoint(const RunFolder& folder, const Setup& setup, SlicedReader& reader, const Progress& progress);

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

}  // namespace pmaptrain::train
