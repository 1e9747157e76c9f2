// A run's parameters and optimizer state, to and from files and executors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/runtime/cpu/executor.h"
#include "core/train/run_folder.h"
#include "core/train/safetensors.h"
#include "core/train/setup.h"

namespace pmaptrain::train {

// The present values of a program's inputs of one group, as device 0 holds them: in the executor's own memory, until
// its next step.
std::vector<TensorView> view_group(const CpuExecutor& executor, Group group);

// Gives every input of `group` its tensor. Throws Error (data), naming `file`, when one is missing, is left over, or
// has another element type or shape.
void write_group(CpuExecutor& executor, Group group, std::span<const TensorView> tensors, const std::string& file);

struct Progress {
  std::int64_t step = 0;            // steps done
  std::int64_t example_cursor = 0;  // positions of the sample stream consumed
  std::int64_t steps_skipped = 0;   // of the steps, those that were not finite and changed nothing
};

// Commits checkpoints/step-NNNNNNNN: params.safetensors, optimizer.safetensors (all state inputs) and state.json (step,
// example cursor, steps skipped, seeds, a hash of the config, checksums of the two files). No tensor is copied on the
// way to its file. Throws Error (failed).
void save_checkpoint(const RunFolder& folder, const Setup& setup, const CpuExecutor& executor,
                     const Progress& progress);

// The parameters of a checkpoint, as they lie in its file.
struct CheckpointParameters {
  std::string path;
  data::Bytes file;
  std::vector<TensorView> tensors;
};

// Opens the parameters of a checkpoint's folder and compares them with its checksum. Throws Error (data).
CheckpointParameters load_parameters(const std::filesystem::path& checkpoint);

}  // namespace pmaptrain::train
