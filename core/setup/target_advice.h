// Warnings about targets that the outputs of a new model are far from.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Appends a sentence if a loss of numbers takes targets as they are, and training will hardly bring the outputs from
// where they begin to these.
void add_distant_targets(const Setup& setup, std::vector<std::string>& out);

}  // namespace pmaptrain::setup
