// Checks that the copies of a value on logical devices are still equal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/runtime/agreement.h"
#include "core/setup/values.h"

namespace pmaptrain::train {

struct Divergence {
  std::string name;                   // the parameter or state input
  std::vector<std::int64_t> devices;  // devices that differ from the majority (at a tie, from the first device)
};

// Compares hashes of every parameter and state input of the module's first entry over all devices of a member. The
// devices have private copies. Returns the first divergence in the program's order, if any. Of several processes, each
// calls this, with its agreement, and gets the same result. Throws FailedElsewhere.
std::optional<Divergence> find_divergence(setup::SlicedReader& reader, Agreement* agreement = nullptr,
                                          std::int64_t member = 0);

// "parameter 'conv_0.kernel' differs on device 3"
std::string describe(const Divergence& divergence, const Program& program);

}  // namespace pmaptrain::train
