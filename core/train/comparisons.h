// Parameters of which something is known beforehand, shown with what was learned of them when a run ends.
#pragma once

#include <cstdint>
#include <vector>

#include "core/run/records/events.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Those that model.init gives values, and those whose true values the data's source knows: with their initial values.
std::vector<Comparison> initial_comparisons(const Setup& setup, std::int64_t member);

// Adds what the module has of the member now.
void add_learned(std::vector<Comparison>& comparisons, Module& module, std::int64_t member);

}  // namespace pmaptrain::train
