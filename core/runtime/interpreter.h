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

struct InterpreterResult {
  std::map<std::string, PerDevice> outputs;  // by name
  std::map<std::string, PerDevice> updates;  // the new values of inputs, by the name of the input
  std::size_t peak_bytes = 0;  // peak memory: the most bytes of values that were live at one time, inputs included
};

// Called after each equation except loops; the equations of a loop's body are observed in each iteration. `value`
// returns an operand or a result.
using Observer = std::function<void(const Equation& equation, const std::function<const PerDevice&(Value)>& value)>;

struct InterpretOptions {
  // Whether to check every value whose type says that it is replicated along an axis. If its copies differ, interpret()
  // throws Error (failed): a rule of an op is wrong.
  bool check_replicated = true;
  // The number of blocks in which sums over devices are added (core/mesh/blocks.h).
  std::int64_t blocks = 1;
  // Called after each equation, including loops, with the times at which it began and ended.
  std::function<void(const Equation&, Clock::time_point, Clock::time_point)> time_observer = {};
  Observer observer = {};
};

// `inputs` maps the name of each input of the program to its value. A value is freed after its last use.
InterpreterResult interpret(const Program& program, std::map<std::string, PerDevice> inputs,
                            const InterpretOptions& options = {});

// Predicts InterpreterResult::peak_bytes; for a program with a loop, slightly more.
std::size_t interpreter_peak_bytes(const Program& program);

}  // namespace pmaptrain
