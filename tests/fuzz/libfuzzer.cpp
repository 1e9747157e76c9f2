// What libFuzzer calls.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  pmaptrain::fuzz::fuzz_one({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
