#include "tests/gpu/programs.h"

#include <set>
#include <string>
#include <utility>

#include "core/graph/text.h"
#include "core/runtime/gpu/backend.h"
#include "tests/catch.h"

namespace pmaptrain::test {
namespace {

// `counts` chooses from the numbers of GPUs that the program can have.
template <class F>
void check_in_all_modes(const std::shared_ptr<const Program>& program, int most, F&& counts) {
  const Values inputs = random_inputs(*program, 3);
  INFO(to_text(*program));
  for (const std::int64_t steps : {1, 3}) {
    const Values expected = interpreted(*program, inputs, steps);
    for (const bool deterministic : {true, false}) {
      const auto parts = deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any;
      for (const int gpus : counts(gpu::possible_gpu_counts(program->mesh, most, parts))) {
        for (const bool private_copies : {false, true}) {
          // As few messages for all values of a psum as possible, or as many. All are gathered, or all exchanged.
          const std::size_t message_bytes = steps == 1 ? gpu::PlanOptions{}.message_bytes : 0;
          const std::size_t least_exchanged = (steps == 1) == private_copies ? gpu::PlanOptions{}.least_exchanged : 1;
          check_program(program, inputs, expected,
                        {gpus, deterministic, private_copies, steps, message_bytes, least_exchanged});
        }
      }
    }
  }
}

}  // namespace

gpu::PlanOptions OnGpus::plan() const {
  return {deterministic, private_copies, message_bytes, least_exchanged, false, blocks};
}

gpu::Limits OnGpus::limits(int processes) const {
  return {deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any, blocks, processes};
}

gpu::Plan plan_of(const std::shared_ptr<const Program>& program, int gpus, const gpu::PlanOptions& options) {
  gpu::SharedPools shared;
  const auto parts = options.deterministic ? gpu::Parts::whole_blocks : gpu::Parts::any;
  return gpu::make_plan(program, gpu::divide(program->mesh, gpus, {parts, options.blocks}), 0, options, shared);
}

std::vector<std::size_t> launches_of(const gpu::Plan& plan, std::string_view op) {
  return places(plan, [&](const gpu::Command& command) {
    const auto* const launch = std::get_if<gpu::Launch>(&command);
    return launch != nullptr && launch->equation->op.name() == op;
  });
}

std::unique_ptr<Module> load_on(gpu::Platform& platform, int gpus, Source source, const gpu::PlanOptions& options,
                                const gpu::MakeKernel& make_kernel) {
  const gpu::GpuBackend backend([&]() -> gpu::Platform& { return platform; }, {gpus, options, make_kernel});
  return std::move(*backend.plan(std::move(source))).load();
}

Values run_on_gpus(std::shared_ptr<const Program> program, const Values& inputs, const OnGpus& how) {
  const auto platform = make_emulated({.devices = how.gpus, .seed = static_cast<unsigned>(how.gpus)});
  const auto module = load_on(*platform, how.gpus, {{{"test", std::move(program), 1}}, how.private_copies}, how.plan());
  return run_module(*module, inputs, how.steps);
}

void check_program(const std::shared_ptr<const Program>& program, const Values& inputs, const Values& expected,
                   const OnGpus& how) {
  INFO("GPUs " << how.gpus << ", deterministic " << how.deterministic << ", private copies " << how.private_copies
               << ", steps " << how.steps << ", messages of " << how.message_bytes << ", exchanged from "
               << how.least_exchanged);
  const Values found = run_on_gpus(program, inputs, how);
  for (const auto& [name, value] : expected) {
    INFO(name);
    const bool same = close(dtype_of(*program, name), found.at(name), value);
    REQUIRE(same);
  }
}

void check_program(const std::shared_ptr<const Program>& program) {
  check_in_all_modes(program, 4, [](const std::vector<int>& counts) {
    return std::set{counts.front(), counts.back()};
  });
}

void check_program_on_all(const std::shared_ptr<const Program>& program) {
  check_in_all_modes(program, 8, [](const std::vector<int>& counts) { return counts; });
}

}  // namespace pmaptrain::test
