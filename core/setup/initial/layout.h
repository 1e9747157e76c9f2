// Which layout a file of initial values is in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/run/checkpoint.h"
#include "core/spec/model.h"

namespace pmaptrain::setup {

// A parameter that is read from a file.
struct TakenParameter {
  const model::Parameter* parameter = nullptr;
  std::string in_file;  // its name there
};

// What is wrong with a file that is in another layout than `from` says, and what would read it.
struct OtherLayout {
  std::string what, help;  // `what` follows the name of the file
};
// Shapes tell the layout of a file, unless all kernels that are taken are square. Then the `format` of its metadata
// tells it, else the name that it has for a kernel. None if that is the layout of `from`, or if nothing tells it, or if
// init.from.transpose says how kernels are stored.
std::optional<OtherLayout> other_layout(const std::vector<TakenParameter>& taken, const spec::InitialFrom& from,
                                        const run::CheckpointFile& file);

// What reads a file whose names are PyTorch's and that is read in the layout of Flax; empty for other names.
std::string names_of_torch_help(const std::vector<run::TensorView>& tensors, const model::Model& model);

}  // namespace pmaptrain::setup
