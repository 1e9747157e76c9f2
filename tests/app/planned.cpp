// How often the commands plan the entries of a config.
#include <cstdint>
#include <string>
#include <vector>

#include "core/runtime/plan_count.h"
#include "tests/app/call.h"
#include "tests/catch.h"

namespace pmaptrain::tests {
namespace {

// The number of plans that a command makes.
std::int64_t planned_by(const std::vector<std::string>& command) {
  const std::int64_t before = plans_made();
  const Finished ran = call(command);
  INFO(ran.out << ran.err);
  REQUIRE(ran.status == 0);
  return plans_made() - before;
}

TEST_CASE("validate, explain, run, eval and bench plan each entry once", "[app]") {
  const TemporaryFolder folder;
  const std::string cnn = "configs/cnn.yaml", run = folder / "run";
  constexpr std::int64_t entries = 2;  // "train" and "evaluate"
  CHECK(planned_by({"validate", cnn}) == entries);
  CHECK(planned_by({"validate", cnn, "--json"}) == entries);
  CHECK(planned_by({"explain", cnn}) == 0);
  CHECK(planned_by({"explain", cnn, "--memory", "--parallelism", "--kernels"}) == entries);
  CHECK(planned_by({"run", cnn, "--max-steps", "1", "--run-dir", run, "--quiet"}) == entries);
  CHECK(planned_by({"eval", run}) == 1);
  CHECK(planned_by({"bench", cnn, "--steps", "1"}) == 1);
  // A measurement loads a module of its own, for one step.
  CHECK(planned_by({"explain", cnn, "--kernels", "--measure"}) == entries + 1);
}

}  // namespace
}  // namespace pmaptrain::tests
