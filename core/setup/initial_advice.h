// Warnings about initial values that fit the model, but hardly what is meant.
#pragma once

#include <string>
#include <vector>

#include "core/setup/initialize.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Parameters that a group of the optimizer freezes though their initial values are drawn: one warning for each group.
std::vector<std::string> frozen_draws(const Setup& setup, const InitialValues& initial);

}  // namespace pmaptrain::train
