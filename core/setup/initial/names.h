// Renames the tensors of a file of initial values to the parameters' names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/run/files/safetensors.h"
#include "core/spec/model.h"

namespace pmaptrain::setup {

// Renames the tensors of the file `path`: by model.init.from.rename, and from the names that init.from.layout has. A
// tensor that is no parameter of the model keeps its name; those that hold nothing of it are removed. Returns the names
// that renamed tensors have in the file, by their new names. Throws Error: usage, at its place, for a rename that
// matches no tensor of the file, or that gives a name which is no parameter; data, without a place, if two tensors
// would have one name.
std::map<std::string, std::string> rename_tensors(std::vector<run::TensorView>& tensors, const model::Model& model,
                                                  const spec::InitialFrom& from, const std::string& path);

// Puts the parameters in the place of arrays that have several of them as ranges: an entry for each, which is the whole
// array. `in_file` gets the names that these have in the file, `added` the arrays that are added to them. An array that
// lacks the one to add stays.
void name_ranges(std::vector<run::TensorView>& tensors, const model::Model& model, const spec::InitialFrom& from,
                 std::map<std::string, std::string>& in_file, std::map<std::string, run::TensorView>& added);

}  // namespace pmaptrain::setup
