// The two formats behind image.h. `out` is [height, width, channels] as stored.
#pragma once

#include "core/data/images/image.h"

namespace pmaptrain::data {

// Throws Error (data) for an image beyond the limits, or without pixels.
void check_image_limits(std::int64_t height, std::int64_t width, const std::string& name);

ImageHead read_png_head(std::span<const std::byte> file, const std::string& name);
void decode_png(std::span<const std::byte> file, const std::string& name, std::int64_t channels,
                std::span<std::byte> out);

ImageHead read_jpeg_head(std::span<const std::byte> file, const std::string& name);
void decode_jpeg(std::span<const std::byte> file, const std::string& name, std::int64_t channels,
                 std::span<std::byte> out);

}  // namespace pmaptrain::data
