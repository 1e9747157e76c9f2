// Compares parameters with known values when a run ends.
#pragma once

#include <cstdint>
#include <vector>

#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// The parameters to compare, with their initial values: parameters whose values model.init.values gives, and parameters
// whose true values the data source knows because it made the targets with them.
std::vector<run::Comparison> initial_comparisons(const setup::Setup& setup, std::int64_t member);

// Adds the values that the module holds for the member now.
void add_current_values(std::vector<run::Comparison>& comparisons, Module& module, std::int64_t member);

}  // namespace pmaptrain::train
