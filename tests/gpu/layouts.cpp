// Divided arrays on emulated GPUs.
#include "tests/runtime/layouts.h"

#include "tests/catch.h"
#include "tests/gpu/programs.h"
#include "tests/slice.h"

namespace pmaptrain {

TEST_CASE("a divided array is written and read as a whole on any number of GPUs", "[gpu][layouts]") {
  const int gpus = GENERATE(1, 2, 3, 6);
  const bool private_copies = GENERATE(false, true);
  CAPTURE(gpus, private_copies);
  const test::EmulatedGpus emulated({.devices = gpus});
  const std::unique_ptr<Module> module = emulated.load(test::divided_arrays(private_copies));
  CHECK_NOTHROW(test::check_divided_arrays(*module));
}

TEST_CASE("GPUs have each element of arrays with random layouts where a plain computation finds it", "[gpu][layouts]") {
  test::Slice slice(32);
  for (std::uint32_t seed = 0; seed < 24; ++seed) {
    for (const int gpus : {1, 2, 3, 6}) {
      if (!slice.takes(seed == 2 && gpus == 3)) continue;
      INFO("seed " << seed << ", " << gpus << " GPUs");
      const test::EmulatedGpus emulated({.devices = gpus});
      const std::unique_ptr<Module> module = emulated.load(test::random_arrays(seed, seed % 2 == 1));
      REQUIRE_NOTHROW(test::check_random_arrays(*module, seed));
    }
  }
}

}  // namespace pmaptrain
