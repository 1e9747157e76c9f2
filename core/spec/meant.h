// What a value of a config key means that a user gives in the words of another program.
#pragma once

#include <string>

#include "core/spec/types/key.h"

namespace pmaptrain::spec {

struct Meant {
  std::string value;    // as the key takes it, or as it was given
  std::string refused;  // if there is no such thing here: that, and what is near
};

// "adam" of "Adam", "mean_squared_error" of "mse", "10000 steps" of "10k steps".
Meant meant_value(const Key& key, const std::string& value);

}  // namespace pmaptrain::spec
