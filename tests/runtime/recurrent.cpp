// The memory of runs with recurrent layers.
#include <fmt/format.h>

#include "core/base/error.h"
#include "core/runtime/cpu/module.h"
#include "core/runtime/gpu/backend.h"
#include "core/setup/plan.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;

namespace {

// A run's training and evaluation on sequences of so many positions.
Source recurrent_run(const std::string& kind, std::int64_t positions) {
  return setup::run_source(testing::setup_of_text(fmt::format(R"(
data:
  source: {{synthetic_signals: {{positions: {}, classes: 3, train: 64, test: 16}}}}
  batch_size: 16
model:
  layers: [{{{}: {{features: 12, bidirectional: true}}}}, global_avg_pool, {{dense: 3}}]
loss: softmax_cross_entropy
optimizer: {{sgd: {{}}, learning_rate: 0.1}}
mesh: {{axes: {{devices: 2}}}}
train: {{duration: 1 step}}
)",
                                                              positions, kind)));
}

}  // namespace

TEST_CASE("the memory of a run with recurrent layers is linear in the positions", "[runtime]") {
  const auto no_gpu = []() -> gpu::Platform& { fail_resource("there is no GPU"); };
  for (const std::string kind : {"lstm", "gru"}) {
    INFO(kind);
    const auto check_linear = [&](const Backend& backend) {
      const auto bytes = [&](std::int64_t positions) {
        const MemoryNeeds needs = backend.plan(recurrent_run(kind, positions))->needs();
        return static_cast<double>(needs.total() - needs.programs);
      };
      const double one = bytes(256), two = bytes(512), four = bytes(1024);
      CHECK(two > one);
      CHECK(four - two <= 2.05 * (two - one));
      CHECK(four <= 4 * one);
    };
    check_linear(CpuBackend({.workers = 2}));
    check_linear(gpu::GpuBackend(no_gpu, {.gpus = 2}));
  }
}
