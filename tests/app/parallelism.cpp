// explain --parallelism: how the work of a step is cut.
#include <regex>

#include "tests/app/call.h"
#include "tests/catch.h"

namespace pmaptrain::tests {
namespace {

// The speed-up that the text gives for so many workers.
double speed_up(const std::vector<std::string>& arguments, int workers) {
  std::vector<std::string> command = {"explain"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  command.emplace_back("--parallelism");
  const Finished ran = call(command);
  REQUIRE(ran.status == 0);
  std::smatch found;
  INFO(ran.out);
  REQUIRE(std::regex_search(ran.out, found, std::regex("\n +" + std::to_string(workers) + " +([0-9.]+)\n")));
  return std::stod(found[1]);
}

TEST_CASE("the work of a step is cut for sixty-four workers, whatever the number of devices", "[app]") {
  for (const char* const devices : {"1", "8", "64"}) {
    INFO(devices << " devices");
    CHECK(speed_up({"configs/cnn.yaml", "--set", "data.batch_size=256", "--devices", devices}, 64) >= 40);
    CHECK(speed_up({"configs/cnn.yaml", "--set", "data.batch_size=256", "--devices", devices}, 16) >= 14);
    CHECK(speed_up({"bench/configs/mlp.yaml", "--devices", devices}, 16) >= 10);
    // 256 channels in a batch of 256 examples
    CHECK(speed_up({"configs/resnet18.yaml", "--set", "data.batch_size=256", "--devices", devices}, 64) >= 40);
  }
}

TEST_CASE("the tasks of a stage are parts of its total, and the interpreter's work is serial", "[app]") {
  const Finished ran =
      call({"explain", "configs/linear_regression.yaml", "--set", "mesh.backend=reference", "--parallelism"});
  REQUIRE(ran.status == 0);
  CHECK(std::regex_search(ran.out, std::regex("\n +64 +1\\.0\n")));
  CHECK(call({"explain", "configs/cnn.yaml", "--parallelism", "--stage", "grad"}).status == 2);
}

}  // namespace
}  // namespace pmaptrain::tests
