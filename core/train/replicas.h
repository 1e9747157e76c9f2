// Whether the copies that logical devices hold of one value are still the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/setup/values.h"

namespace pmaptrain::train {

struct Divergence {
  std::string name;                   // the parameter or piece of state
  std::vector<std::int64_t> devices;  // those that differ from the majority (at a tie, from the first device's)
};

// Compares hashes of every parameter and piece of state of the module's first entry over all devices of a member, which
// have private copies. The first divergence in the program's order, if any.
std::optional<Divergence> find_divergence(SlicedReader& reader, std::int64_t member = 0);

// "parameter 'conv_0.kernel' differs on device 3"
std::string describe(const Divergence& divergence, const Program& program);

}  // namespace pmaptrain::train
