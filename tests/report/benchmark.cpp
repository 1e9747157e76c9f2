#include "core/report/benchmark.h"

#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/slice.h"

namespace pmaptrain::testing {
namespace {

TEST_CASE("as many steps are timed as asked for, whatever the groups", "[report]") {
  const setup::Setup setup = setup_of_config("linear_regression.yaml", {"mesh.workers=1"});
  std::vector<std::int64_t> numbers{4001};
  test::Turns turns;
  for (const std::size_t few : turns.next(2)) numbers.push_back(few == 0 ? 1 : 7);
  for (const std::int64_t steps : numbers) {
    const report::Benchmark found = report::benchmark(setup, steps);
    CHECK(found.steps == steps);
    CHECK(found.min_step_seconds > 0);
    CHECK(found.median_step_seconds >= found.min_step_seconds);
    CHECK(found.workers == 1);
  }
}

TEST_CASE("without a number at least two hundred steps are timed", "[report]") {
  const report::Benchmark found = report::benchmark(setup_of_config("linear_regression.yaml", {"mesh.workers=1"}));
  CHECK(found.steps >= 200);
}

TEST_CASE("a step's share of the products that the machine can do follows from the figures beside it", "[report]") {
  report::Benchmark figures;
  figures.flops_per_step = 3e9;
  figures.median_step_seconds = 0.02;
  figures.peaks.gemm_flops_per_second = 300e9;
  CHECK(figures.share_of_gemm_peak() == Approx(0.5));
}

}  // namespace
}  // namespace pmaptrain::testing
