// Writes checkpoints: parameters, optimizer state and progress of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/run/checkpoint.h"
#include "core/setup/setup.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

// Takes one slice of an input's bytes. Slices come in order.
using UseSlice = std::function<void(std::span<const std::byte>)>;
// Passes the bytes of one input (by index) of the training program, for one member, to `use`, slice by slice.
using ReadSlices = std::function<void(std::size_t input, std::int64_t member, const UseSlice& use)>;

// Returns a function that reads the values that the module's training entry has now on device 0. The reader outlives
// the result.
ReadSlices read_slices_of(setup::SlicedReader& reader);

// The inputs of the training program that a checkpoint has: parameters and state, except for the guard's state.
std::vector<std::size_t> checkpoint_inputs(const setup::Setup& setup);

// The metadata of params.safetensors: the mean and the standard deviation of the targets, with which a program that
// reads only this file converts outputs to targets, and which of them are of logarithms. Empty if targets are not
// normalised.
std::map<std::string, std::string> metadata_of(const run::RunState& state, const spec::DataSpec& data);

// XXH3 of the run's resolved config, as 16 hexadecimal digits.
std::string config_hash(const setup::Setup& setup);

// Writes the files of a checkpoint: params.safetensors, optimizer.safetensors (state), ema.safetensors if there is a
// moving average (debiased, by the parameters' names), and state.json. For an ensemble, the first dimension of every
// tensor is the members. Completes `state`: sets the members that follow from the setup and the files, such as
// checksums. Tensors are written in slices. Throws Error (failed).
void write_files(const run::Directory& into, const setup::Setup& setup, run::RunState state, const ReadSlices& slices);
// Writes these files and commits them as checkpoints/step-NNNNNNNN. `best`: as in RunFolder::commit_checkpoint().
void write_checkpoint(const run::RunFolder& folder, const setup::Setup& setup, const run::RunState& state,
                      const ReadSlices& slices, const std::string& best = {});

// Commits best-NNNNNNNN after an evaluation that was the best of some members. These members, and members without a
// best, are written from `slices`; the others are copied from checkpoints/best. Throws Error.
void write_best(const run::RunFolder& folder, const setup::Setup& setup, run::RunState state, const ReadSlices& slices);

}  // namespace pmaptrain::train
