// Fused rows in the plans of a GPU, and in its steps.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/passes.h"
#include "core/graph/text.h"
#include "core/ops/all.h"
#include "core/passes/fuse.h"
#include "core/passes/pipeline.h"
#include "tests/catch.h"
#include "tests/gpu/programs.h"
#include "tests/session_run.h"

namespace pmaptrain {
namespace {

using Counts = std::map<std::string, std::size_t>;

// How many launches of which ops a step has on one of so many GPUs; a library's call counts as one.
Counts kernels_of_step(const std::shared_ptr<const Program>& program, int gpus, bool deterministic) {
  const gpu::Plan plan = test::plan_of(program, gpus, {.deterministic = deterministic});
  Counts counts;
  gpu::for_each_of<gpu::Launch>(plan.commands, [&](const gpu::Launch& launch, double) {
    const Op& op = launch.equation->op;
    counts[std::string(op.name())] += make_gpu_kernel(op, gpu::request_of(plan, launch)).commands.size();
  });
  return counts;
}

std::size_t total(const Counts& counts) {
  std::size_t sum = 0;
  for (const auto& [name, count] : counts) sum += count;
  return sum;
}

// Calls check(kernels of a step, results, GPUs, deterministic) for 1, 2 and 4 emulated GPUs, in both modes.
void on_gpus(const std::shared_ptr<const Program>& fused, const test::Values& inputs,
             const std::function<void(Counts&, const test::Values&, int, bool)>& check) {
  for (const int gpus : {1, 2, 4}) {
    for (const bool deterministic : {false, true}) {
      INFO(gpus << " GPUs, deterministic " << deterministic << "\n" << to_text(*fused));
      Counts counts = kernels_of_step(fused, gpus, deterministic);
      const auto platform = test::make_emulated({.devices = gpus});
      const auto module =
          test::load_on(*platform, gpus, {{{"test", fused, 1}}}, {.deterministic = deterministic}, make_gpu_kernel);
      check(counts, test::run_module(*module, inputs), gpus, deterministic);
    }
  }
}

}  // namespace

TEST_CASE("the loss of the CNN, its derivative and the accuracy are one kernel", "[gpu]") {
  const auto before = testing::setup_of_config("cnn.yaml", {}).training;
  const auto after = std::make_shared<const Program>(run_passes(*before, passes_of_gpus()));
  for (const int gpus : {1, 4}) {
    for (const bool deterministic : {false, true}) {
      INFO(gpus << " GPUs, deterministic " << deterministic);
      const Counts then = kernels_of_step(before, gpus, deterministic),
                   now = kernels_of_step(after, gpus, deterministic);
      for (const char* const op : {"one_hot", "argmax"}) {
        CHECK(then.contains(op));
        CHECK_FALSE(now.contains(op));
      }
      CHECK(now.at("reduce_max") == 1);  // of the largest gradients
      CHECK(then.at("reduce_max") > 1);
      CHECK(now.at("fused_rows") == 2);  // the other one has the sums of weights, losses and correct answers
      CHECK(total(now) + 9 <= total(then));
    }
  }
}

TEST_CASE("fused rows have the same bits on any number of GPUs", "[gpu]") {
  const auto program = test::program_of(R"(mesh a=4
batch %x:f32[6,100]{a}
batch %t:i32[6]{a}
%m = reduce_max[dims=[1]] %x
%mb = broadcast[shape=[6,100], dims=[0]] %m
%h = sub %x, %mb
%e = exp %h
%z = reduce_sum[dims=[1]] %e
%zb = broadcast[shape=[6,100], dims=[0]] %z
%s = div %e, %zb
%o = one_hot[depth=100, dtype=f32] %t
%g = sub %s, %o
%c = reduce_sum[dims=[0]] %g
%all = psum[axes={a}] %c
return z = %z
return g = %g
return all = %all
)");
  const auto fused = std::make_shared<const Program>(fuse(simplify(*program)));
  const test::Values inputs = test::random_inputs(*program, 3);
  const test::Values expected = test::interpreted(*program, inputs);
  for (const int gpus : {1, 2, 4}) {
    const auto platform = test::make_emulated({.devices = gpus});
    const auto module = test::load_on(*platform, gpus, {{{"test", fused, 1}}}, {}, make_gpu_kernel);
    CHECK(module->instructions(0).size() > 0);
    const test::Values found = test::run_module(*module, inputs);
    for (const std::string name : {"output z", "output g"}) {
      INFO(name << " on " << gpus << " GPUs");
      const bool same = found.at(name) == expected.at(name);
      CHECK(same);
    }
    const bool close = test::close(DType::f32, found.at("output all"), expected.at("output all"));
    CHECK(close);
  }
}

// The statistics of each device and the gradient of all: sums that each device reads, and sums of the rows of
// neighbouring devices, which one launch adds up.
TEST_CASE("fused columns have the same values on any number of GPUs", "[gpu]") {
  const auto program = test::program_of(R"(mesh a=4
batch %x:f32[300,8]{a}
params %w:f32[8]{}
%e = exp %x
%n = neg %e
%s = reduce_sum[dims=[0]] %n
%b = broadcast[shape=[300,8], dims=[1]] %s
%d = sub %x, %b
%wv = pvary[axes={a}] %w
%wb = broadcast[shape=[300,8], dims=[1]] %wv
%g = mul %x, %wb
%t = reduce_sum[dims=[0]] %g
%all = psum[axes={a}] %t
return s = %s
return d = %d
return all = %all
)");
  const auto fused = std::make_shared<const Program>(run_passes(fuse(simplify(*program)), passes_of_gpus()));
  const test::Values inputs = test::random_inputs(*program, 3);
  const test::Values expected = test::interpreted(*program, inputs);
  on_gpus(fused, inputs, [&](Counts& counts, const test::Values& found, int gpus, bool) {
    CHECK_FALSE(counts.contains("reduce_sum"));
    for (const std::string name : {"output s", "output d"}) {
      INFO(name << " on " << gpus << " GPUs");
      const bool same = found.at(name) == expected.at(name);
      CHECK(same);
    }
    const bool close = test::close(DType::f32, found.at("output all"), expected.at("output all"));
    CHECK(close);
  });
}

TEST_CASE("the mean and the variance of each device are one equation with the same bits on any number of GPUs",
          "[gpu]") {
  const auto program = test::program_of(R"(mesh a=4
batch %x:bf16[300,8]{a}
batch %n:f32[8]{a}
batch %w:f32[300]{a}
%zero = constant[dtype=f32, shape=[], value=0]
%z = pvary[axes={a}] %zero
%wb = broadcast[shape=[300,8], dims=[0]] %w
%i = gt %wb, %z
%c = cast[dtype=f32] %x
%k = select %i, %c, %z
%s = reduce_sum[dims=[0]] %k
%m = div %s, %n
%b = broadcast[shape=[300,8], dims=[1]] %m
%d = sub %c, %b
%e = mul %d, %d
%q = select %i, %e, %z
%v = reduce_sum[dims=[0]] %q
%all = psum[axes={a}] %v
return m = %m
return v = %v
return all = %all
)");
  const auto fused = std::make_shared<const Program>(run_passes(fuse(simplify(*program)), passes_of_gpus()));
  const test::Values inputs = test::random_inputs(*program, 3);
  const test::Values expected = test::interpreted(*program, inputs);
  on_gpus(fused, inputs, [&](Counts& counts, const test::Values& found, int, bool deterministic) {
    CHECK(counts["fused_columns"] == 1);
    CHECK_FALSE(counts.contains("reduce_sum"));
    for (const std::string name : {"output m", "output v"}) CHECK((found.at(name) == expected.at(name)));
    if (deterministic) CHECK((found.at("output all") == expected.at("output all")));
  });
}

}  // namespace pmaptrain
