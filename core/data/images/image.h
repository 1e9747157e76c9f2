// Images in PNG and JPEG files, decoded to 8 bits for each channel.
//
// As in Pillow and torchvision, alpha channels, gamma and colour profiles are dropped. 16 bits are rounded to 8. The
// orientation in EXIF data is applied, so that an image is seen as viewers show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace pmaptrain::data {

enum class ImageFormat : std::uint8_t { png, jpeg };

// The head of an image file, which is read before the image is decoded.
struct ImageHead {
  std::int64_t height = 0, width = 0;  // as stored
  ImageFormat format = ImageFormat::png;
  bool grey = false;             // by the type of the file: a palette is colour
  std::uint8_t orientation = 1;  // EXIF: 1 to 8
  bool turned() const { return orientation >= 5; }
  // The height of the image with its orientation applied.
  std::int64_t seen_height() const { return turned() ? width : height; }
  std::int64_t seen_width() const { return turned() ? height : width; }
};

// More is refused before anything is decoded.
inline constexpr std::int64_t max_image_side = 65535;
inline constexpr std::int64_t max_image_pixels = std::int64_t{1} << 27;

// Whether a file begins as an image that can be read.
bool is_image(std::span<const std::byte> file);

// Reads the head of the image in `file`, of which the beginning suffices. `name` is the file's, for messages. Throws
// Error (data) for another format, for a damaged head, and for an image beyond the limits.
ImageHead read_image_head(std::span<const std::byte> file, const std::string& name);

// Throws Error (data) if `file_bytes` is too small for an image with this head, so that memory is not allocated in
// vain.
void check_image_bytes(const ImageHead& head, std::size_t file_bytes, const std::string& name);

// Decodes to rows of `channels` bytes for each pixel, [seen_height, seen_width, channels]: 3 are red, green and blue;
// 1 is for grey images alone. `head` is that of the whole `file`. Throws Error (data) for a damaged or truncated file,
// and (resource) if there is too little memory.
void decode_image(std::span<const std::byte> file, const std::string& name, const ImageHead& head,
                  std::int64_t channels, std::span<std::byte> out);

// The orientation in EXIF data, which is a TIFF file: 1 where there is none or the data is not valid.
std::uint8_t exif_orientation(std::span<const std::byte> tiff);

// Turns and mirrors pixels of `channels` bytes as the orientation says: [height, width] as stored becomes [seen_height,
// seen_width].
void apply_orientation(const ImageHead& head, std::int64_t channels, std::span<const std::byte> stored,
                       std::span<std::byte> seen);

}  // namespace pmaptrain::data
