// Divided arrays on emulated GPUs.
#include "tests/runtime/layouts.h"

#include "tests/catch.h"
#include "tests/gpu/programs.h"

namespace pmaptrain {

TEST_CASE("a divided array is written and read as a whole on any number of GPUs", "[gpu][layouts]") {
  const int gpus = GENERATE(1, 2, 3, 6);
  const bool private_copies = GENERATE(false, true);
  CAPTURE(gpus, private_copies);
  const test::EmulatedGpus emulated({.devices = gpus});
  const std::unique_ptr<Module> module = emulated.load(test::divided_arrays(private_copies));
  CHECK_NOTHROW(test::check_divided_arrays(*module));
}

}  // namespace pmaptrain
