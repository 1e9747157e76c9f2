// Renames the tensors of a file of initial values to the parameters' names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/run/files/safetensors.h"
#include "core/spec/model.h"

namespace pmaptrain::setup {

// Renames the tensors of the file `path`: by model.init.from.rename, and from PyTorch's names with layout: torch. A
// tensor that is no parameter of the model keeps its name. Returns the names that renamed tensors have in the file, by
// their new names. Throws Error: usage, at its place, for a rename that matches no tensor of the file, or that gives a
// name which is no parameter; data, without a place, if two tensors would have one name.
std::map<std::string, std::string> rename_tensors(std::vector<run::TensorView>& tensors, const model::Model& model,
                                                  const spec::InitialFrom& from, const std::string& path);

// Puts the parameters in the place of arrays that PyTorch has for several of them (model::TorchParameter::whole).
// `in_file` gets the names that these have in the file, `sums` the memory of parameters for which two are added. An
// array that does not fit stays.
void divide_arrays(std::vector<run::TensorView>& tensors, const model::Model& model,
                   std::map<std::string, std::string>& in_file, std::vector<data::Bytes>& sums);

}  // namespace pmaptrain::setup
