// JPEG by libjpeg-turbo, which reports errors by longjmp: no object with a destructor may live between setjmp and a
// call of it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>
// These need the ones above.
#include <jpeglib.h>
//
#include <jerror.h>

#include "core/base/error.h"
#include "core/data/images/formats.h"

namespace pmaptrain::data {
namespace {

// A progressive image of more scans would take long to decode; encoders write about ten.
constexpr int max_scans = 64;

// The first members, so that the library's pointers are pointers to these.
struct Errors {
  jpeg_error_mgr manager = {};
  std::jmp_buf jump = {};
  std::array<char, JMSG_LENGTH_MAX> message = {};
};
struct Progress {
  jpeg_progress_mgr manager = {};
  bool too_many_scans = false;
};

// Whether a warning means that pixels are wrong or missing. The library continues after warnings. Others are harmless,
// such as unneeded bytes between two segments, which many cameras write.
bool is_damage(int warning) {
  return warning == JWRN_HIT_MARKER || warning == JWRN_JPEG_EOF || warning == JWRN_HUFF_BAD_CODE ||
         warning == JWRN_ARITH_BAD_CODE || warning == JWRN_MUST_RESYNC;
}

class JpegReader {
 public:
  JpegReader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {
    jpeg_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = on_error;
    errors_.manager.emit_message = on_message;
    progress_.manager.progress_monitor = on_progress;
    guarded([this] {
      jpeg_create_decompress(&jpeg_);
      jpeg_.progress = &progress_.manager;
    });
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg_); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  ImageHead head() {
    guarded([this] { read_head(); });
    ImageHead head{jpeg_.image_height, jpeg_.image_width, ImageFormat::jpeg, jpeg_.num_components == 1, 1};
    check_image_limits(head.height, head.width, name_);
    constexpr std::array<char, 6> exif = {'E', 'x', 'i', 'f', 0, 0};
    for (jpeg_saved_marker_ptr marker = jpeg_.marker_list; marker != nullptr; marker = marker->next) {
      if (marker->data_length < exif.size() || std::memcmp(marker->data, exif.data(), exif.size()) != 0) continue;
      const std::span<const JOCTET> data(marker->data, marker->data_length);
      head.orientation = exif_orientation(std::as_bytes(data.subspan(exif.size())));
      break;
    }
    return head;
  }

  void decode(std::int64_t channels, std::span<std::byte> out) {
    guarded([this] { read_head(); });
    const std::int64_t pixels = std::int64_t{jpeg_.image_height} * jpeg_.image_width;
    if (pixels * channels != std::ssize(out)) fail("its size has changed while it was read");
    const bool four = jpeg_.num_components == 4;
    // Rows of CMYK are wider than those of the result.
    std::vector<JSAMPLE> row(four ? std::size_t{4} * jpeg_.image_width : 0);
    guarded([&] { read_pixels(channels, out.data(), row.data()); });
  }

 private:
  // Runs `body`, which calls libjpeg and has no destructors to run.
  template <class Body>
  void guarded(const Body& body) {
    if (setjmp(errors_.jump) == 0) {
      body();
      return;
    }
    if (progress_.too_many_scans) fail(fmt::format("it has more than {} scans", max_scans).c_str());
    fail(errors_.message.data());
  }

  [[noreturn]] void fail(const char* why) const {
    fail_data(fmt::format("'{}' is damaged: {}", name_, why), "copy or download it again");
  }

  void read_head() {
    jpeg_save_markers(&jpeg_, JPEG_APP0 + 1, 0xffff);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.data()), file_.size());
    jpeg_read_header(&jpeg_, TRUE);
  }

  void read_pixels(std::int64_t channels, std::byte* out, JSAMPLE* cmyk) {
    const bool four = jpeg_.num_components == 4;
    jpeg_.out_color_space = four ? JCS_CMYK : channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_.dct_method = JDCT_ISLOW;
    jpeg_start_decompress(&jpeg_);
    const std::size_t width = jpeg_.output_width, bytes = width * static_cast<std::size_t>(channels);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      auto* to = reinterpret_cast<JSAMPLE*>(out + jpeg_.output_scanline * bytes);
      JSAMPLE* row = four ? cmyk : to;
      jpeg_read_scanlines(&jpeg_, &row, 1);
      if (four) to_rgb(cmyk, width, to);
    }
    jpeg_finish_decompress(&jpeg_);
  }

  // Adobe's programs store inverted CMYK values.
  void to_rgb(const JSAMPLE* cmyk, std::size_t width, JSAMPLE* rgb) const {
    const unsigned flip = jpeg_.saw_Adobe_marker ? 0 : 255;
    for (std::size_t x = 0; x < width; ++x) {
      const unsigned key = cmyk[4 * x + 3] ^ flip;
      for (std::size_t c = 0; c < 3; ++c) {
        rgb[3 * x + c] = static_cast<JSAMPLE>(((cmyk[4 * x + c] ^ flip) * key + 127) / 255);
      }
    }
  }

  static void on_error(j_common_ptr jpeg) {
    auto* const errors = reinterpret_cast<Errors*>(jpeg->err);
    jpeg->err->format_message(jpeg, errors->message.data());
    std::longjmp(errors->jump, 1);
  }

  static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0 && is_damage(jpeg->err->msg_code)) on_error(jpeg);
  }

  static void on_progress(j_common_ptr jpeg) {
    if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= max_scans) return;
    reinterpret_cast<Progress*>(jpeg->progress)->too_many_scans = true;
    std::longjmp(reinterpret_cast<Errors*>(jpeg->err)->jump, 1);
  }

  std::span<const std::byte> file_;
  const std::string& name_;
  Errors errors_;
  Progress progress_;
  jpeg_decompress_struct jpeg_ = {};
};

}  // namespace

ImageHead read_jpeg_head(std::span<const std::byte> file, const std::string& name) {
  return JpegReader(file, name).head();
}

void decode_jpeg(std::span<const std::byte> file, const std::string& name, std::int64_t channels,
                 std::span<std::byte> out) {
  JpegReader(file, name).decode(channels, out);
}

}  // namespace pmaptrain::data
