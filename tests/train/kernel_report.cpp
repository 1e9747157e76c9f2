#include "core/train/kernel_report.h"

#include "core/ops/collective/collective.h"
#include "tests/catch.h"
#include "tests/train/session_run.h"
#include "tests/train/steps.h"

namespace pmaptrain::testing {
namespace {

CpuExecutor executor_of(const train::Setup& setup, int workers = 2) {
  return {make_plan(setup.training), {workers, KernelChoice::best}};
}

TEST_CASE("the lines of a report follow the plan, loops before what they repeat", "[train]") {
  const train::Setup setup = small_cnn({"data.microbatches=2"});
  const CpuExecutor executor = executor_of(setup);
  const train::KernelReport report = train::kernel_report(executor);
  std::vector<const Step*> expected, found;
  const auto add = [&](const auto& self, const std::vector<Step>& steps) -> void {
    for (const Step& step : steps) {
      expected.push_back(&step);
      self(self, step.before);
      self(self, step.body);
    }
  };
  for (const Stage& stage : executor.plan().stages) {
    add(add, stage.invariant);
    add(add, stage.varying);
  }
  for (const train::KernelLine& line : report.lines) found.push_back(line.step);
  CHECK(found == expected);
  bool inside = false;
  for (const train::KernelLine& line : report.lines) {
    inside = inside || line.depth > 0;
    CHECK((line.step->kind == Step::Kind::kernel) == !line.kernel.implementation.empty());
  }
  CHECK(inside);
}

TEST_CASE("the operations of a report's kernels are those of the step but for its reductions", "[train]") {
  for (const train::Setup& setup : {small_cnn(), small_cnn({"data.microbatches=2"}), small_cnn({"mesh.axes.devices=2"}),
                                    setup_of_config("linear_regression.yaml")}) {
    const Program& program = *setup.training;
    double reductions = 0;
    for (const Equation& equation : program.equations) {
      if (equation.op.as<ops::Psum>() == nullptr) continue;
      for (Value value : equation.operands) reductions += static_cast<double>(numel(program.type(value)));
    }
    reductions *= static_cast<double>(program.mesh.devices());
    const CpuExecutor executor = executor_of(setup);
    const train::KernelReport report = train::kernel_report(executor);
    double kernels = 0;
    for (const train::KernelLine& line : report.lines) {
      if (line.step->kind == Step::Kind::kernel) kernels += line.flops;
    }
    CHECK(kernels + reductions == Approx(train::cost_of(program).flops).epsilon(1e-12));
    CHECK(report.flops() >= kernels);
    CHECK(report.bytes() > 0);
    CHECK_FALSE(report.times);
  }
}

TEST_CASE("a profiled step computes what a step does, and times all that it does", "[train]") {
  const train::Setup setup = small_cnn({"data.microbatches=2"});
  for (const int workers : {1, 3}) {
    CpuExecutor plain = executor_of(setup, workers), profiled = executor_of(setup, workers);
    fill(plain, setup);
    fill(profiled, setup);
    plain.run(3);
    profiled.run();
    const Profile profile = profiled.profile(2);
    const auto same = [](std::span<const std::byte> a, std::span<const std::byte> b) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end());
    };
    for (const Input& input : setup.training->inputs) {
      INFO(input.name);
      const bool equal = same(plain.input(input.name), profiled.input(input.name));
      CHECK(equal);
    }
    double total = 0;
    for (const auto& [step, seconds] : profile.seconds) total += seconds;
    CHECK(total > 0);
    CHECK(total <= profile.wall_seconds * workers);
    for (const train::KernelLine& line : train::kernel_report(profiled).lines) {
      CHECK(profile.seconds.contains(line.step));
    }
  }
}

TEST_CASE("a measured report has times, peaks and shares of the roofline", "[train]") {
  const train::Setup setup = small_cnn();
  CpuExecutor executor = executor_of(setup, 1);
  fill(executor, setup);
  const train::KernelReport report = train::measured_kernel_report(executor);
  REQUIRE(report.times);
  CHECK(report.times->step_seconds > 0);
  CHECK(report.seconds() > 0);
  for (const train::KernelLine& line : report.lines) {
    INFO(line.kernel.implementation);
    if (line.flops > 1e6) CHECK(line.share_of_roofline(report.times->peaks) > 0);
  }
}

TEST_CASE("the roofline is the lower of what can be computed and what can be moved", "[train]") {
  const train::Peaks peaks{100e9, 10e9};
  train::KernelLine line;
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

TEST_CASE("what the library changes the layout of is told, and how much that moves", "[train]") {
  // Two devices with a kernel of their own each: the weights' gradient, where the library likes blocks of channels.
  const train::Setup setup = small_cnn();
  const CpuExecutor executor = executor_of(setup);
  bool any = false;
  for (const train::KernelLine& line : train::kernel_report(executor).lines) {
    for (const LayoutChange& change : line.kernel.layout_changes) {
      any = true;
      CHECK((change.of.starts_with("operand ") || change.of.starts_with("result ")));
      CHECK(change.bytes > 0);
      CHECK(line.layout_bytes >= static_cast<double>(change.bytes));
      // Weights, never images.
      const std::size_t index = static_cast<std::size_t>(change.of.back() - '0');
      const Type& type =
          change.of.starts_with("operand") ? line.step->operand_types.at(index) : line.step->result_types.at(index);
      CHECK(type.shape.at(0) == 3);
    }
  }
  // On machines with AVX2 or AVX-512 the library blocks weights.
  if (__builtin_cpu_supports("avx2")) CHECK(any);
}

#endif

}  // namespace
}  // namespace pmaptrain::testing
