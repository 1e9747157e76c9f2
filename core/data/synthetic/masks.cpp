#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/opening.h"
#include "core/data/synthetic/pixel_noise.h"
#include "core/data/synthetic/synthetic.h"

namespace pmaptrain::data {
namespace {

constexpr std::int64_t most_shapes = 4;
enum : std::int32_t { background, disc, rectangle };

class MaskDataset : public Dataset {
 public:
  MaskDataset(const SyntheticMasks& o, std::uint64_t seed, Split split)
      : height_(o.height),
        width_(o.width),
        channels_(o.channels),
        size_(split == Split::train ? o.train : o.test),
        scale_(PixelNoise::scale_of(o.noise)),
        key_(stream_key(seed, "data/masks")),
        lane_(2 * static_cast<std::uint32_t>(split)) {}

  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::u8, {height_, width_, channels_}}; }
  Field target() const override { return {DType::i32, {height_, width_}}; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    return std::pair<std::int64_t, std::int64_t>{background, rectangle};
  }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto row = static_cast<std::uint64_t>(index);
    std::array<std::uint32_t, 2 + 6 * most_shapes> words;
    philox_row(key_, row, lane_, words);
    const auto pixels = static_cast<std::size_t>(height_ * width_);
    std::vector<std::uint8_t> values(pixels, static_cast<std::uint8_t>(32 + below(words[0], 64)));
    std::vector<std::int32_t> labels(pixels, background);
    const std::int64_t shapes = 2 + below(words[1], most_shapes - 1);
    for (std::int64_t i = 0; i < shapes; ++i) draw(words.data() + 2 + 6 * i, values, labels);
    std::memcpy(target, labels.data(), pixels * sizeof(std::int32_t));
    if (input == nullptr) return;
    PixelNoise noisy(scale_, key_, row, lane_ + 1);
    for (const std::uint8_t value : values) {
      for (std::int64_t c = 0; c < channels_; ++c) *input++ = noisy(value);
    }
  }

 private:
  static std::int64_t below(std::uint32_t word, std::int64_t count) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
  }

  // Six words are a shape.
  void draw(const std::uint32_t* words, std::vector<std::uint8_t>& values, std::vector<std::int32_t>& labels) const {
    const std::int32_t label = words[0] >> 31 == 0 ? disc : rectangle;
    const auto value = static_cast<std::uint8_t>(112 + below(words[1], 112));
    const std::int64_t y = below(words[2], height_), x = below(words[3], width_);
    const std::int64_t side = std::min(height_, width_), least = std::max<std::int64_t>(1, side / 12);
    const std::int64_t tall = least + below(words[4], side / 8 + 1);
    const std::int64_t wide = label == disc ? tall : least + below(words[5], side / 8 + 1);
    for (std::int64_t v = std::max<std::int64_t>(0, y - tall); v < std::min(height_, y + tall + 1); ++v) {
      for (std::int64_t u = std::max<std::int64_t>(0, x - wide); u < std::min(width_, x + wide + 1); ++u) {
        if (label == disc && (v - y) * (v - y) + (u - x) * (u - x) > tall * tall) continue;
        const auto at = static_cast<std::size_t>(v * width_ + u);
        values[at] = value;
        labels[at] = label;
      }
    }
  }

  std::int64_t height_, width_, channels_, size_;
  std::int64_t scale_;  // of the noise
  PhiloxKey key_;
  std::uint32_t lane_;
};

}  // namespace

std::shared_ptr<const Dataset> make_masks(const SyntheticMasks& options, std::uint64_t seed, Split split) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 28;
  if (options.height > most_elements / options.width / options.channels) {
    fail_data(fmt::format("synthetic_masks: images of {}x{}x{} are too large: they have more than {} bytes",
                          options.height, options.width, options.channels, most_elements));
  }
  return std::make_shared<MaskDataset>(options, seed, split);
}

Declaration<SyntheticMasks> SyntheticMasks::declaration() {
  constexpr double most = 1 << 16, most_examples = 1LL << 40;
  return declare::kind<SyntheticMasks>(
      {.path = "synthetic_masks",
       .meaning = "Synthetic images with a label for each pixel: 0 background, 1 disc, 2 rectangle, of random sizes, "
                  "places and brightness, plus normal noise. Each image is generated from the seed when it is read.",
       .example = "source: synthetic_masks\nsource: {synthetic_masks: {height: 64, width: 64, train: 2000}}"},
      field(&SyntheticMasks::height,
            {.path = "height", .low = 4, .high = most, .meaning = "Height of an image.", .example = "height: 64"}),
      field(&SyntheticMasks::width,
            {.path = "width", .low = 4, .high = most, .meaning = "Width of an image.", .example = "width: 64"}),
      field(&SyntheticMasks::channels,
            {.path = "channels", .low = 1, .high = 4, .meaning = "Number of channels.", .example = "channels: 1"}),
      field(&SyntheticMasks::train, {.path = "train",
                                     .low = 1,
                                     .high = most_examples,
                                     .meaning = "Number of training examples.",
                                     .example = "train: 2000"}),
      field(&SyntheticMasks::test, {.path = "test",
                                    .low = 0,
                                    .high = most_examples,
                                    .meaning = "Number of test examples; 0 for no test split.",
                                    .example = "test: 500"}),
      field(&SyntheticMasks::noise, {.path = "noise",
                                     .high = 1000,
                                     .meaning = "Standard deviation of the noise, where 1 is the range of a pixel.",
                                     .example = "noise: 0.1"}));
}

Source SyntheticMasks::open(const Opening& opening) const {
  Source source;
  if (opening.wants(Split::train)) source.train = make_masks(*this, opening.seed, Split::train);
  if (test > 0 && opening.wants(Split::test)) source.test = make_masks(*this, opening.seed, Split::test);
  source.encoding.classes = {"background", "disc", "rectangle"};
  return source;
}

}  // namespace pmaptrain::data
