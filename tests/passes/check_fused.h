// Fused programs against what they were made from, bit by bit.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/analysis/cost.h"
#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/passes/fuse.h"
#include "tests/catch.h"
#include "tests/runtime/programs.h"

namespace pmaptrain {

inline std::shared_ptr<const Program> fused(const Program& program) {
  return std::make_shared<const Program>(fuse(simplify(program)));
}

inline std::int64_t count(const Program& program, std::string_view op) {
  std::int64_t total = 0;
  for (const Equation& equation : program.equations) total += equation.op.name() == op ? 1 : 0;
  return total;
}

// The bytes that the equations of a program read and write.
inline double traffic(const Program& program) {
  double bytes = 0;
  for (const Equation& equation : program.equations) bytes += cost_of(program, equation).bytes;
  return bytes;
}

inline void require_same(const test::Values& found, const test::Values& expected, const std::string& how) {
  for (const auto& [name, value] : expected) {
    INFO(name << ", " << how);
    const bool same = found.at(name) == value;
    REQUIRE(same);
  }
}

// The interpreter and the runtime, with every kind of kernel and number of workers, give the unfused program's bits.
inline void check_fused(const Program& program, std::uint64_t seed = 7) {
  const auto after = fused(program);
  INFO(to_text(program));
  INFO(to_text(*after));
  const test::Values inputs = test::random_inputs(program, seed);
  for (const std::int64_t steps : {1, 3}) {
    require_same(test::interpreted(*after, inputs, steps), test::interpreted(program, inputs, steps), "interpreted");
    const auto before = std::make_shared<const Program>(program);
    const auto unfused = [&](KernelChoice kernels) {
      return test::run_program(before, inputs, {1, false, steps, false, kernels, 8});
    };
    const test::Values by_best = unfused(KernelChoice::best), by_reference = unfused(KernelChoice::reference);
    for (const int workers : {1, 2, 3, 5}) {
      for (const bool copies : {false, true}) {
        for (const KernelChoice kernels : {KernelChoice::best, KernelChoice::reference}) {
          if (kernels == KernelChoice::reference && workers != 2) continue;
          const std::string how = "workers " + std::to_string(workers) + (copies ? ", private" : "") +
                                  (kernels == KernelChoice::best ? ", best" : ", reference");
          require_same(test::run_program(after, inputs, {workers, copies, steps, false, kernels, 8}),
                       kernels == KernelChoice::best ? by_best : by_reference, how);
        }
      }
    }
  }
}

inline void check_fused(const std::string& body) {
  for (const std::int64_t devices : {1, 3, 20}) {
    check_fused(*test::program_of("mesh a=1\n" + body, {{"a", devices}}));
  }
}

}  // namespace pmaptrain
