// Patterns for model.init.from that choose between parameters.
#pragma once

#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/spec/model.h"

namespace pmaptrain::train {

// Which keys of init.from take the parameters that fit, and leave out the parameters and tensors that do not, as a
// piece of advice: include or exclude, whichever is shorter. exclude leaves out what `from` does already, too.
std::string keys_that_take(const std::vector<std::string>& fitting, const std::vector<std::string>& unfit,
                           const spec::InitialFrom& from, const model::Model& model);

}  // namespace pmaptrain::train
