// Runs a program equation by equation on every logical device with the reference kernels. This is slow and simple, and
// the tests compare the other backends with it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/graph/program.h"

namespace pmaptrain {

// One row-major array per logical device, in device order.
using PerDevice = std::vector<std::vector<std::byte>>;

struct Interpreted {
  std::map<std::string, PerDevice> outputs;
  std::map<std::string, PerDevice> updates;  // by the name of the input that is replaced
  std::size_t most_bytes = 0;  // peak memory: the most bytes of values that were live at one time, inputs included
};

// Called after each equation except loops; the equations of a loop's body are observed in each iteration. `value`
// returns an operand or a result.
using Observer = std::function<void(const Equation& equation, const std::function<const PerDevice&(Value)>& value)>;

struct InterpretOptions {
  // Whether to check every value whose type says that it is replicated along an axis. If its copies differ, interpret()
  // throws Error (failed): a rule of an op is wrong.
  bool check_replicated = true;
  // Called after each equation with the times at which it began and ended.
  std::function<void(const Equation&, Clock::time_point, Clock::time_point)> ran = {};
  Observer observer = {};
};

// `inputs` maps the name of each input of the program to its value. A value is freed after its last use.
Interpreted interpret(const Program& program, std::map<std::string, PerDevice> inputs,
                      const InterpretOptions& options = {});

// The value that Interpreted::most_bytes will have, or slightly more for a program with a loop.
std::size_t interpreted_bytes(const Program& program);

}  // namespace pmaptrain
