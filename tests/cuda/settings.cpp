// What the module for CUDA sets for NCCL.
#include <cstdlib>
#include <string>

#include "core/runtime/gpu/load_platform.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"
#include "tests/words.h"

namespace pmaptrain::test {

TEST_CASE("NCCL makes connections with a communicator and orders launches, unless it is told otherwise",
          "[cuda][module]") {
  const std::string module = cuda_module();
  if (module.empty()) return;
  const Variable named("PMAPTRAIN_CUDA_MODULE", module);
  const Variable connect("NCCL_RUNTIME_CONNECT", "1"), order("NCCL_LAUNCH_ORDER_IMPLICIT", "");
  unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  const auto load = [] { message_of_error([] { gpu::load_platform(); }); };  // without a GPU it refuses after that
  load();
  CHECK(std::getenv("NCCL_RUNTIME_CONNECT") == std::string("1"));
  unsetenv("NCCL_RUNTIME_CONNECT");
  load();
  REQUIRE(std::getenv("NCCL_RUNTIME_CONNECT") != nullptr);
  REQUIRE(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT") != nullptr);
  CHECK(std::getenv("NCCL_RUNTIME_CONNECT") == std::string("0"));
  CHECK(std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT") == std::string("1"));
}

}  // namespace pmaptrain::test
