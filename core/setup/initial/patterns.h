// Patterns for model.init.from that choose between parameters.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/spec/model.h"

namespace pmaptrain::setup {

// "a, b, c and 7 more"
std::string some_of(const std::vector<std::string>& names);

// Which keys of init.from take the parameters that fit, and leave out the parameters and tensors that do not, as a
// piece of advice: include or exclude, whichever is shorter. exclude leaves out what `from` does already, too.
std::string keys_that_take(const std::vector<std::string>& fitting, const std::vector<std::string>& unfit,
                           const spec::InitialFrom& from, const model::Model& model);

// The entry of init.from.rename, such as "backbone.*": "layers_0.*", by which every tensor of a list of layers is a
// parameter of another list that the file lacks, in its shape; empty if there is none. `missing` are names of
// parameters and `others` names of tensors that are no parameters, each with its shape.
std::string renaming(const std::map<std::string, Shape>& missing, const std::map<std::string, Shape>& others);

}  // namespace pmaptrain::setup
