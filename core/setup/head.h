// Warnings about layers that cannot fit the task of their run.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Appends one sentence for each of: a last layer whose values some targets of a regression are not among, more outputs
// than classes, a dense layer directly behind another, dropout behind the outputs. Throws Error (usage) at the last
// layer if no target of the training split is among its values.
void add_head_mistakes(const Setup& setup, std::vector<std::string>& out);

}  // namespace pmaptrain::setup
