// Warnings and notes about initial values that fit the model, but hardly what is meant.
#pragma once

#include <string>
#include <vector>

#include "core/setup/initialize.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Parameters that a group of the optimizer freezes though their initial values are drawn: one warning for each group.
std::vector<std::string> frozen_draws(const Setup& setup, const InitialValues& initial);

// Where the parameters are those of another run, what its data had otherwise: a note about another normalisation of the
// inputs, and a warning about other classes, if the layer that answers for them is taken. Empty if they are equal.
std::string other_normalisation(const Setup& setup, const InitialValues& initial);
std::string other_classes(const Setup& setup, const InitialValues& initial);

}  // namespace pmaptrain::setup
