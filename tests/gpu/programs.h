// Programs as text on emulated GPUs beside the interpreter. Numbers are whole, so sums are exact in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/runtime/gpu/plan.h"
#include "tests/runtime/programs.h"

namespace pmaptrain::test {

struct OnGpus {
  int gpus = 1;
  bool deterministic = true, private_copies = false;
  std::int64_t steps = 1;
  std::size_t message_bytes = gpu::PlanOptions{}.message_bytes;
  std::size_t least_exchanged = gpu::PlanOptions{}.least_exchanged;
  int blocks = 0;  // see gpu::PlanOptions
};

// Equations are computed by their reference: what is tested is what the GPUs do between them.
Values run_on_gpus(std::shared_ptr<const Program> program, const Values& inputs, const OnGpus& how);

// Fails unless that gives the expected values.
void check_program(const std::shared_ptr<const Program>& program, const Values& inputs, const Values& expected,
                   const OnGpus& how);

// Fails unless one step and three steps give the interpreter's values in every mode, on the fewest and the most GPUs up
// to four.
void check_program(const std::shared_ptr<const Program>& program);
// The same on every number of GPUs up to eight that the program can have.
void check_program_on_all(const std::shared_ptr<const Program>& program);

}  // namespace pmaptrain::test
