// Writes checkpoints: parameters, optimizer state and progress of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/setup/setup.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

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

// Commits best-NNNNNNNN after an evaluation that was the best of some members: these, and those that have no best yet,
// as `slices` give them, and the others as checkpoints/best has them. Throws Error.
void write_best(const RunFolder& folder, const Setup& setup, RunState state, const Slices& slices);

}  // namespace pmaptrain::train
