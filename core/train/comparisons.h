// Compares parameters with known values when a run ends.
#pragma once

#include <cstdint>
#include <vector>

#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// The parameters to compare, with their initial values: those that model.init gives values, and those whose true values
// the data's source knows.
std::vector<Comparison> initial_comparisons(const Setup& setup, std::int64_t member);

// Adds the member's current values in the module.
void add_learned(std::vector<Comparison>& comparisons, Module& module, std::int64_t member);

}  // namespace pmaptrain::train
