// Runs a program equation by equation on every logical device with the reference kernels: slow, obvious, and the
// oracle that the planned runtime is tested against.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/graph/program.h"

namespace pmaptrain {

// One row-major array per logical device, in device order.
using PerDevice = std::vector<std::vector<std::byte>>;

struct Interpreted {
  std::map<std::string, PerDevice> outputs;
  std::map<std::string, PerDevice> updates;  // by the name of the input that is replaced
};

// `inputs` has each input of the program by name. Throws Error (failed) when a value whose type says that it is the
// same along an axis is not: a wrong rule of an op.
Interpreted interpret(const Program& program, const std::map<std::string, PerDevice>& inputs);

}  // namespace pmaptrain
