// Images that tests write.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/data/files.h"

namespace pmaptrain::testing {

inline std::string png_chunk(const std::string& kind, const std::string& body) {
  const std::string checked = kind + body;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), checked.size());
  return big(body.size(), 4) + checked + big(crc, 4);
}

// A PNG of 8 bits a channel, 1 or 3 channels; `rows` are the pixels, row by row. The head can say another size.
struct Png {
  std::int64_t height = 0, width = 0, channels = 1;
  std::string pixels;
  std::int64_t head_height = height, head_width = width;

  std::string build() const {
    std::string rows;
    const auto bytes = static_cast<std::size_t>(width * channels);
    for (std::size_t y = 0; y < static_cast<std::size_t>(height); ++y) rows += '\0' + pixels.substr(y * bytes, bytes);
    const std::string head = big(static_cast<std::uint64_t>(head_width), 4) +
                             big(static_cast<std::uint64_t>(head_height), 4) + '\x08' + (channels == 1 ? '\0' : '\2') +
                             std::string(3, '\0');
    return "\x89PNG\r\n\x1a\n" + png_chunk("IHDR", head) + png_chunk("IDAT", deflated(rows, 15)) +
           png_chunk("IEND", "");
  }
};

// Of one value.
inline Png flat_png(std::int64_t height, std::int64_t width, std::int64_t channels, char value) {
  return {height, width, channels, std::string(static_cast<std::size_t>(height * width * channels), value),
          height, width};
}

// Writes a file of a folder, with the folders on the way.
inline void write_in(const TemporaryFolder& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories((folder.path() / name).parent_path());
  folder.write(name, bytes);
}

}  // namespace pmaptrain::testing
