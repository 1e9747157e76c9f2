// PNG by libpng, which reports errors by longjmp: no object with a destructor may live between setjmp and a call of it.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "core/base/error.h"
#include "core/data/images/formats.h"
#include "core/data/images/label_png.h"

namespace pmaptrain::data {
namespace {

class PngReader {
 public:
  PngReader(std::span<const std::byte> file, const std::string& name) : rest_(file), name_(name) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      fail_resource("libpng could not be initialised");
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  ImageHead head() {
    guarded([this] { read_info(); });
    check_image_limits(height_, width_, name_);
    ImageHead head{height_, width_, ImageFormat::png, grey_, 1};
    if (exif_bytes_ > 0) head.orientation = exif_orientation({reinterpret_cast<std::byte*>(exif_), exif_bytes_});
    return head;
  }

  void decode(std::int64_t channels, std::span<std::byte> out) {
    guarded([&] { read_info(); });
    if (height_ * width_ * channels != std::ssize(out)) fail("its size has changed while it was read");
    guarded([&] { read_pixels(channels, out.data()); });
  }

  LabelImage labels() {
    guarded([this] { read_info(); });
    check_image_limits(height_, width_, name_);
    check_has_numbers();
    LabelImage image{height_, width_, std::vector<std::uint8_t>(static_cast<std::size_t>(height_ * width_))};
    guarded([&] { read_numbers(reinterpret_cast<std::byte*>(image.labels.data())); });
    return image;
  }

 private:
  // Runs `body`, which calls libpng and has no destructors to run.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(png_jmpbuf(png_)) == 0) {
      body();
      return;
    }
    fail(message_.data());
  }

  [[noreturn]] void fail(const char* why) const {
    fail_data(fmt::format("'{}' is damaged: {}", name_, why), "copy or download it again");
  }

  void read_info() {
    png_set_read_fn(png_, this, read);
    // Limits for the library: chunks other than pixels are small, and there are few.
    png_set_user_limits(png_, max_image_side, max_image_side);
    png_set_chunk_malloc_max(png_, png_alloc_size_t{8} << 20);
    png_set_chunk_cache_max(png_, 1000);
    png_read_info(png_, info_);
    height_ = png_get_image_height(png_, info_);
    width_ = png_get_image_width(png_, info_);
    const png_byte type = png_get_color_type(png_, info_);
    grey_ = type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_GRAY_ALPHA;
    png_uint_32 bytes = 0;
    if (png_get_eXIf_1(png_, info_, &bytes, &exif_) != 0) exif_bytes_ = bytes;
  }

  // Whether a pixel is one number of 8 bits or less.
  void check_has_numbers() const {
    const png_byte type = png_get_color_type(png_, info_), bits = png_get_bit_depth(png_, info_);
    if ((type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE) && bits <= 8) return;
    const char* const kind = type == PNG_COLOR_TYPE_GRAY         ? "is grey with 16 bits"
                             : type == PNG_COLOR_TYPE_GRAY_ALPHA ? "is grey with an alpha channel"
                                                                 : "is in colour";
    fail_data(
        fmt::format("the mask '{}' {}, but a pixel of a mask is the number of a class, as grey or as index into a "
                    "palette",
                    name_, kind),
        "with Pillow, Image.fromarray(labels.astype(np.uint8)).save('mask.png') writes numbers [height, width]");
  }

  void read_numbers(std::byte* out) {
    png_set_packing(png_);  // to a byte each
    read_rows(out, width_);
  }

  void read_pixels(std::int64_t channels, std::byte* out) {
    png_set_scale_16(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (grey_ && png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (grey_ && channels == 3) png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    read_rows(out, width_ * channels);
  }

  void read_rows(std::byte* out, std::int64_t bytes) {
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const auto row = static_cast<std::size_t>(bytes);
    if (png_get_rowbytes(png_, info_) != row) png_error(png_, "its rows have an unexpected length");
    for (int pass = 0; pass < passes; ++pass) {
      for (std::int64_t y = 0; y < height_; ++y) {
        png_read_row(png_, reinterpret_cast<png_bytep>(out + static_cast<std::size_t>(y) * row), nullptr);
      }
    }
    png_read_end(png_, nullptr);
  }

  static PngReader& of(void* pointer) { return *static_cast<PngReader*>(pointer); }

  static void on_error(png_structp png, png_const_charp message) {
    std::array<char, 128>& to = of(png_get_error_ptr(png)).message_;
    std::strncpy(to.data(), message, to.size() - 1);
    png_longjmp(png, 1);
  }

  static void on_warning(png_structp, png_const_charp) {}

  static void read(png_structp png, png_bytep to, std::size_t count) {
    std::span<const std::byte>& rest = of(png_get_io_ptr(png)).rest_;
    if (rest.size() < count) png_error(png, "it ends too early");
    std::memcpy(to, rest.data(), count);
    rest = rest.subspan(count);
  }

  std::span<const std::byte> rest_;
  const std::string& name_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  std::array<char, 128> message_ = {};
  std::int64_t height_ = 0, width_ = 0;
  bool grey_ = false;
  png_bytep exif_ = nullptr;
  std::size_t exif_bytes_ = 0;
};

}  // namespace

ImageHead read_png_head(std::span<const std::byte> file, const std::string& name) {
  return PngReader(file, name).head();
}

void decode_png(std::span<const std::byte> file, const std::string& name, std::int64_t channels,
                std::span<std::byte> out) {
  PngReader(file, name).decode(channels, out);
}

LabelImage decode_labels(std::span<const std::byte> file, const std::string& name) {
  return PngReader(file, name).labels();
}

// As the colour map of PASCAL VOC: the bits of the number are dealt to red, green and blue, the low ones first, as high
// bits.
std::array<std::uint8_t, 3> color_of_label(std::uint8_t label) {
  std::array<std::uint8_t, 3> color = {};
  for (unsigned bit = 0; bit < 8; ++bit) {
    color[bit % 3] = static_cast<std::uint8_t>(color[bit % 3] | ((label >> bit & 1U) << (7 - bit / 3)));
  }
  return color;
}

std::vector<std::byte> encode_labels(std::span<const std::uint8_t> labels, std::int64_t height, std::int64_t width) {
  const unsigned count = labels.empty() ? 1U : *std::max_element(labels.begin(), labels.end()) + 1U;
  std::vector<std::array<std::uint8_t, 3>> palette;
  for (unsigned label = 0; label < count; ++label) palette.push_back(color_of_label(static_cast<std::uint8_t>(label)));
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(height);
  image.width = static_cast<png_uint_32>(width);
  image.format = PNG_FORMAT_RGB_COLORMAP;
  image.colormap_entries = count;
  std::vector<std::byte> file(PNG_IMAGE_PNG_SIZE_MAX(image));
  png_alloc_size_t size = file.size();
  if (png_image_write_to_memory(&image, file.data(), &size, 0, labels.data(), 0, palette.data()) == 0) {
    fail_running(std::string("a mask cannot be encoded: ") + image.message);
  }
  file.resize(size);
  return file;
}

}  // namespace pmaptrain::data
