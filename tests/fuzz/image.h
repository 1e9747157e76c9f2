// Images through the libraries, within the limits of an image folder.
#pragma once

#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "core/data/images/image.h"
#include "tests/fuzz/target.h"

namespace pmaptrain::fuzz {

// Reads the head of `input`, then the image twice: it has the same pixels each time.
inline void read_image(std::span<const std::byte> input) {
  const data::Bytes file = copy_of(input);
  try {
    const data::ImageHead head = data::read_image_head(file.view(), "image");
    require(head.height >= 1 && head.width >= 1 && head.height * head.width <= data::max_image_pixels,
            "an image is within the limits");
    require(head.orientation >= 1 && head.orientation <= 8, "an orientation is one of eight");
    plant_bug(head.height > 255, input);
    data::check_image_bytes(head, file.size(), "image");
    const std::int64_t channels = head.grey ? 1 : 3, bytes = head.height * head.width * channels;
    if (bytes > 1 << 18) return;  // what is large takes long, and reads no other code
    std::vector<std::byte> first(static_cast<std::size_t>(bytes)), second(first.size(), std::byte{0xff});
    data::decode_image(file.view(), "image", head, channels, first);
    data::decode_image(file.view(), "image", head, channels, second);
    require(first == second, "every pixel is written");
  } catch (const Error& error) {
    require(error.status() == ExitStatus::data || error.status() == ExitStatus::resource,
            "what is wrong with a file is a matter of data, or too large");
  }
}

}  // namespace pmaptrain::fuzz
