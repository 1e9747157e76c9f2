// PNG images. Their chunks have checksums, which no mutation gets right: they are computed anew.
#include <zlib.h>

#include <algorithm>

#include "tests/fuzz/image.h"

namespace pmaptrain::fuzz {
namespace {

// Chunks are a length, four letters, so many bytes and a checksum of all but the length.
std::vector<std::byte> with_checksums(std::span<const std::byte> input) {
  std::vector<std::byte> file(input.begin(), input.end());
  constexpr std::size_t magic = 8, around = 12;
  for (std::size_t at = magic; at + around <= file.size();) {
    const std::uint64_t length = data::read_big(file, at, 4);
    if (length > file.size() - at - around) break;
    const std::size_t end = at + 8 + static_cast<std::size_t>(length);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(file.data() + at + 4), end - at - 4);
    for (std::size_t i = 0; i < 4; ++i) file[end + i] = static_cast<std::byte>(crc >> (24 - 8 * i));
    at = end + 4;
  }
  return file;
}

}  // namespace

void fuzz_one(std::span<const std::byte> input) {
  read_image(input);
  read_image(with_checksums(input));
}

}  // namespace pmaptrain::fuzz
