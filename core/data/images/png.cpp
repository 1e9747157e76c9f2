// PNG by libpng, which reports errors by longjmp: no object with a destructor may live between setjmp and a call of it.
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>

#include "core/base/error.h"
#include "core/data/images/formats.h"

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

  void read_pixels(std::int64_t channels, std::byte* out) {
    png_set_scale_16(png_);
    if (png_get_color_type(png_, info_) == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (grey_ && png_get_bit_depth(png_, info_) < 8) png_set_expand_gray_1_2_4_to_8(png_);
    if (grey_ && channels == 3) png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    const auto row = static_cast<std::size_t>(width_ * channels);
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

}  // namespace pmaptrain::data
