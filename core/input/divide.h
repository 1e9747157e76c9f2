// data.validation: a share of the training examples that is kept aside.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::input {

// Takes data.validation out of the training split. `groups` has the number of the group of each example, from 0, where
// the config names a column of groups. Throws Error (usage), placed at the key, for a share that leaves no example to
// train on, and for what cannot be divided so.
void divide(data::Source& source, const spec::DataSpec& spec, const std::vector<std::uint32_t>& groups);

}  // namespace pmaptrain::input
