// The list of all update rules.
#pragma once

#include <vector>

#include "core/declare/kind.h"
#include "core/optimizers/rule.h"

namespace pmaptrain::optimizers {

const std::vector<declare::KindOf<Rule>>& rules();

}  // namespace pmaptrain::optimizers
