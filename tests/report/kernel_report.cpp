#include "core/report/kernel_report.h"

#include "core/ops/collective/collective.h"
#include "core/runtime/cpu/report.h"
#include "core/setup/programs.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/steps.h"

namespace pmaptrain::testing {
namespace {

TEST_CASE("the lines of a report follow the plan, loops before what they repeat", "[report]") {
  const setup::Setup setup = small_cnn({"data.microbatches=2"});
  const cpu::Plan plan = cpu::make_plan(setup.training);
  const cpu::BoundPlan bound(plan, {});
  std::vector<const cpu::Instruction*> expected;
  const auto add = [&](const auto& self, const std::vector<cpu::Instruction>& instructions) -> void {
    for (const cpu::Instruction& instruction : instructions) {
      expected.push_back(&instruction);
      if (const auto* const loop = instruction.as<cpu::Loop>()) self(self, loop->body);
    }
  };
  for (const cpu::Stage& stage : plan.stages) {
    add(add, stage.every_worker);
    for (const cpu::ChunkList& chunked : stage.chunk_lists) add(add, chunked.instructions);
    add(add, stage.tasks);
    for (const cpu::PieceList& list : stage.piece_lists) add(add, list.instructions);
  }
  const cpu::InstructionRows report = cpu::report_of(plan, bound);
  CHECK(report.instructions == expected);
  bool inside = false;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    inside = inside || report.rows[i].depth > 0;
    const bool kernel = expected[i]->as<cpu::Kernel>() != nullptr || expected[i]->as<cpu::RowSums>() != nullptr ||
                        expected[i]->as<cpu::ProductInParts>() != nullptr;
    CHECK(kernel == report.rows[i].kernel);
  }
  CHECK(inside);
}

TEST_CASE("the operations of a report's kernels are those of the step but for its reductions", "[report]") {
  for (const setup::Setup& setup : {small_cnn(), small_cnn({"data.microbatches=2"}), small_cnn({"mesh.axes.devices=2"}),
                                    setup_of_config("linear_regression.yaml")}) {
    const Program& program = *setup.training;
    double reductions = 0;
    for (const Equation& equation : program.equations) {
      if (equation.op.as<ops::Psum>() == nullptr) continue;
      for (Value value : equation.operands) reductions += static_cast<double>(numel(program.type(value)));
    }
    reductions *= static_cast<double>(program.mesh.devices());
    const CpuBackend backend({.workers = 2});
    const std::unique_ptr<Planned> planned = backend.plan(setup::step_source(setup));
    const report::KernelReport report = report::kernel_report(backend, *planned);
    double kernels = 0;
    for (const report::KernelLine& line : report.lines) {
      if (line.kernel) kernels += line.flops;
    }
    CHECK(kernels + reductions == Approx(setup::cost_of(program).flops).epsilon(1e-12));
    CHECK(report.flops() >= kernels);
    CHECK(report.bytes() > 0);
    CHECK_FALSE(report.times);
  }
}

TEST_CASE("a profiled step computes what a step does, and times all that it does", "[report]") {
  const setup::Setup setup = small_cnn({"data.microbatches=2"});
  for (const int workers : {1, 3}) {
    const std::unique_ptr<Module> plain = load_step(setup, {.workers = workers}),
                                  profiled = load_step(setup, {.workers = workers});
    take_steps(*plain, 3);
    take_steps(*profiled);
    const Profile profile = profiled->profile(setup::train_entry, 0, 2);
    for (const Input& input : setup.training->inputs) {
      if (input.group == Group::batch) continue;
      INFO(input.name);
      const auto value = [&](Module& module) { return setup::bytes_of(module, module.input(input.name)); };
      CHECK(value(*plain) == value(*profiled));
    }
    double total = 0;
    for (const double seconds : profile.seconds) total += seconds;
    CHECK(total > 0);
    CHECK(total <= profile.wall_seconds);
    const std::vector<InstructionReport> rows = profiled->instructions(setup::train_entry);
    REQUIRE(rows.size() == profile.seconds.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].flops > 1e6) CHECK(profile.seconds[i] > 0);
    }
  }
}

TEST_CASE("a measured report has times, peaks and shares of the roofline", "[report]") {
  const setup::Setup setup = small_cnn();
  const CpuBackendOptions options{.workers = 1};
  const report::KernelReport report = report::measured_kernel_report(CpuBackend(options), *load_step(setup, options));
  REQUIRE(report.times);
  CHECK(report.times->step_seconds > 0);
  CHECK(report.seconds() > 0);
  for (const report::KernelLine& line : report.lines) {
    INFO(line.implementation);
    if (line.flops > 1e6) CHECK(line.share_of_roofline(report.times->peaks) > 0);
  }
}

TEST_CASE("the roofline is the lower of what can be computed and what can be moved", "[report]") {
  const report::Peaks peaks{100e9, 10e9};
  report::KernelLine line;
  line.flops = 1e9;   // 10 ms
  line.bytes = 50e6;  // 5 ms
  line.seconds = 0.02;
  CHECK(line.share_of_roofline(peaks) == Approx(0.5));
  line.bytes = 200e6;  // 20 ms
  CHECK(line.share_of_roofline(peaks) == Approx(1));
  line.seconds = 0;
  CHECK(line.share_of_roofline(peaks) == 0);
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS

TEST_CASE("what the library changes the layout of is told, and how much that moves", "[report]") {
  // Two devices with a kernel of their own each: the weights' gradient, where the library likes blocks of channels.
  const setup::Setup setup = small_cnn();
  const std::unique_ptr<Module> module = load_step(setup, {.workers = 2});
  bool any = false;
  for (const InstructionReport& row : module->instructions(setup::train_entry)) {
    for (const std::string& of : row.layout_changes) {
      any = true;
      CHECK((of.starts_with("operand ") || of.starts_with("result ")));
      CHECK(row.layout_bytes > 0);
      // Weights, never images.
      const std::size_t index = static_cast<std::size_t>(of.back() - '0');
      const std::vector<Value>& values = of.starts_with("operand") ? row.equation->operands : row.equation->results;
      CHECK(setup.training->type(values.at(index)).shape.at(0) == 3);
    }
  }
  // On machines with AVX2 or AVX-512 the library blocks weights.
  if (__builtin_cpu_supports("avx2")) CHECK(any);
}

#endif

}  // namespace
}  // namespace pmaptrain::testing
