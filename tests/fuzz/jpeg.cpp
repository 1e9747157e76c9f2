// JPEG images.
#include "tests/fuzz/image.h"

namespace pmaptrain::fuzz {

void fuzz_one(std::span<const std::byte> input) { read_image(input); }

}  // namespace pmaptrain::fuzz
