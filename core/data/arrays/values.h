// The source of examples that a config has itself.
#pragma once

#include <vector>

#include "core/data/opening.h"

namespace pmaptrain::data {

struct Values {
  static constexpr bool has_test = false;
  std::vector<std::vector<double>> inputs, targets;

  static Declaration<Values> declaration();
  Source open(const Opening& opening) const;
};

}  // namespace pmaptrain::data
