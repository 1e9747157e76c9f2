// Programs as text, random inputs for them, and what the planned runtime makes of both.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/cpu/plan.h"
#include "core/runtime/interpreter.h"
#include "tests/runtime/single.h"

namespace pmaptrain::test {

using Values = std::map<std::string, PerDevice>;

std::shared_ptr<const Program> program_of(const std::string& text, const std::vector<Axis>& mesh = {});

// Values for every input: small whole numbers, so that sums are exact in whatever order; equal on the devices that a
// type does not tell apart.
Values random_inputs(const Program& program, std::uint64_t seed);

struct Run {
  int workers = 1;
  bool private_copies = false;
  std::int64_t steps = 1;
  bool step_by_step = false;  // run(1) for each step, in place of one run(steps)
  KernelChoice kernels = KernelChoice::reference;
  std::int64_t pieces = 8;  // as PlanOptions::pieces: small programs would be one piece
  std::int64_t blocks = 1;
};

// "output name" and "update name" to what each device has after the last step of a module of one program.
Values run_module(Module& module, const Values& inputs, std::int64_t steps = 1, bool step_by_step = false);
Values run_program(std::shared_ptr<const Program> program, const Values& inputs, const Run& how);
// The same from the interpreter.
Values interpreted(const Program& program, const Values& inputs, std::int64_t steps = 1);

// Of "output name" or "update name".
DType dtype_of(const Program& program, const std::string& result);

// What the runtime gives under the best kernels after three steps, with pieces of `pieces`. Fails unless that is the
// same for 1, 2, 3 and 5 workers, with and without private copies, in one run and step by step.
Values same_for_all_workers(std::shared_ptr<const Program> program, const Values& inputs, std::int64_t pieces = 8,
                            std::int64_t blocks = 1);

// Values for inputs of f32 whose sums differ with the order in which they are added.
Values uneven_inputs(const Program& program, std::uint64_t seed);

// What else runs every program of check_runtime: tests of other backends add themselves.
using CheckProgram = void (*)(const std::shared_ptr<const Program>& program);
std::vector<CheckProgram>& other_backends();

// Whether values of this type are equal: to rounding, since the interpreter adds device by device, and a plan
// otherwise.
bool close(DType dtype, const PerDevice& found, const PerDevice& expected);

// Fails unless the runtime gives the interpreter's bits after one step and after three, for 1, 2, 3 and 5 workers, with
// and without private copies, in one run and step by step.
void check_runtime(const std::string& text, const std::vector<Axis>& mesh = {});

// One device, fewer devices than pieces, as many, and pieces of three devices; of these last no sanitizer sees more
// than of the others, which take it half as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline const std::vector<std::int64_t> device_counts{1, 3, 8};
#else
inline const std::vector<std::int64_t> device_counts{1, 3, 8, 20};
#endif
// The same for a program over the axis a of so many devices.
void check_on_all_meshes(const std::string& body);

}  // namespace pmaptrain::test
