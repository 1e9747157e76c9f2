#include "core/data/synthetic/synthetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/opening.h"
#include "core/data/synthetic/pixel_noise.h"

namespace pmaptrain::data {
namespace {

// An upper bound that keeps the products below from overflowing.
constexpr std::int64_t max_examples = std::int64_t{1} << 40;
constexpr std::int64_t max_elements = std::int64_t{1} << 28;

void check_range(std::string_view source, std::string_view key, std::int64_t value, std::int64_t most) {
  if (value < 1 || value > most) {
    fail_data(fmt::format("{}: {} is {}, expected 1 to {}", source, key, value, most));
  }
}

void check_noise(std::string_view source, double noise) {
  if (!(noise >= 0.0 && noise <= 1e6)) {
    fail_data(fmt::format("{}: noise is {}, expected 0 to 1000000", source, noise));
  }
}

// ---- linear --------------------------------------------------------------------------------------------------------

// Normal values in sequence: pair k of a row comes from the row's words 2k and 2k + 1.
class Normals {
 public:
  Normals(PhiloxKey key, std::uint64_t row)
      : key_(key), low_(static_cast<std::uint32_t>(row)), high_(static_cast<std::uint32_t>(row >> 32)) {}
  double next() {
    if (at_ == 4) {
      const auto words = philox4x32(key_, {block_++, 0, low_, high_});
      const auto [a, b] = normal_pair(words[0], words[1]);
      const auto [c, d] = normal_pair(words[2], words[3]);
      values_ = {a, b, c, d};
      at_ = 0;
    }
    return values_[at_++];
  }

 private:
  PhiloxKey key_;
  std::uint32_t low_, high_;
  std::uint32_t block_ = 0;
  std::array<double, 4> values_ = {};
  std::size_t at_ = 4;
};

class LinearDataset : public Dataset {
 public:
  LinearDataset(std::vector<double> w, double b, double noise, std::int64_t size, PhiloxKey key)
      : w_(std::move(w)), b_(b), noise_(noise), size_(size), key_(key) {}

  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::f32, {static_cast<std::int64_t>(w_.size())}}; }
  Field target() const override { return {DType::f32, {1}}; }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    Normals normals(key_, static_cast<std::uint64_t>(index));
    double y = b_;
    for (std::size_t j = 0; j < w_.size(); ++j) {
      const auto x = static_cast<float>(normals.next());
      if (input != nullptr) std::memcpy(input + j * sizeof(float), &x, sizeof(float));
      y += static_cast<double>(x) * w_[j];
    }
    const auto rounded = static_cast<float>(y + noise_ * normals.next());
    std::memcpy(target, &rounded, sizeof(float));
  }

 private:
  std::vector<double> w_;
  double b_, noise_;
  std::int64_t size_;
  PhiloxKey key_;
};

// ---- images --------------------------------------------------------------------------------------------------------

constexpr std::int64_t grid = 4;  // knots of a pattern along height and along width

class ImageDataset : public Dataset {
 public:
  ImageDataset(const SyntheticImages& o, std::uint64_t seed, Split split)
      : height_(o.height),
        width_(o.width),
        channels_(o.channels),
        classes_(o.classes),
        size_(split == Split::train ? o.train : o.test),
        key_(stream_key(seed, "data/examples")),
        split_(split) {
    scale_ = PixelNoise::scale_of(o.noise);
    draw_patterns(stream_key(seed, "data/true"));
  }

  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::u8, {height_, width_, channels_}}; }
  Field target() const override { return {DType::i32, {}}; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    return std::pair<std::int64_t, std::int64_t>{0, classes_ - 1};
  }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto row = static_cast<std::uint64_t>(index);
    const auto lane = static_cast<std::uint32_t>(split_);
    std::array<std::uint32_t, 3> head;
    philox_row(key_, row, 2 * lane, head);
    const auto label = static_cast<std::int32_t>(below(head[0], classes_));
    std::memcpy(target, &label, sizeof(label));
    if (input == nullptr) return;

    const std::int64_t shift_y = below(head[1], height_ / 8 + 1);
    const std::int64_t shift_x = below(head[2], width_ / 8 + 1);
    const std::uint8_t* const pattern = patterns_.data() + label * height_ * width_ * channels_;
    PixelNoise noisy(scale_, key_, row, 2 * lane + 1);
    for (std::int64_t y = 0; y < height_; ++y) {
      const std::uint8_t* const line = pattern + (y + shift_y) % height_ * width_ * channels_;
      for (std::int64_t x = 0; x < width_; ++x) {
        const std::uint8_t* const pixel = line + (x + shift_x) % width_ * channels_;
        for (std::int64_t c = 0; c < channels_; ++c) *input++ = noisy(pixel[c]);
      }
    }
  }

 private:
  static std::int64_t below(std::uint32_t word, std::int64_t count) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
  }

  // Random values on a coarse grid that wraps around, and between them a bilinear surface in 16-bit fractions.
  void draw_patterns(PhiloxKey key) {
    patterns_.resize(static_cast<std::size_t>(classes_ * height_ * width_ * channels_));
    std::vector<std::uint32_t> knots(static_cast<std::size_t>(grid * grid * channels_));
    auto out = patterns_.begin();
    for (std::int64_t k = 0; k < classes_; ++k) {
      philox_row(key, static_cast<std::uint64_t>(k), 1, knots);
      const auto knot = [&](std::int64_t y, std::int64_t x, std::int64_t c) {
        return 32 + below(knots[static_cast<std::size_t>((y % grid * grid + x % grid) * channels_ + c)], 192);
      };
      for (std::int64_t y = 0; y < height_; ++y) {
        const std::int64_t v = y * grid * 65536 / height_;
        for (std::int64_t x = 0; x < width_; ++x) {
          const std::int64_t u = x * grid * 65536 / width_;
          for (std::int64_t c = 0; c < channels_; ++c) {
            const auto across = [&](std::int64_t line) {
              const std::int64_t left = knot(line, u >> 16, c);
              return left * 65536 + (knot(line, (u >> 16) + 1, c) - left) * (u & 65535);
            };
            const std::int64_t top = across(v >> 16);
            const std::int64_t value = top + (((across((v >> 16) + 1) - top) * (v & 65535)) >> 16);
            *out++ = static_cast<std::uint8_t>(value >> 16);
          }
        }
      }
    }
  }

  std::int64_t height_, width_, channels_, classes_, size_;
  std::int64_t scale_ = 0;  // of the noise
  PhiloxKey key_;
  Split split_;
  std::vector<std::uint8_t> patterns_;  // [classes, height, width, channels]
};

}  // namespace

LinearSource make_linear(const SyntheticLinear& options, std::uint64_t seed, std::int64_t devices) {
  constexpr std::string_view name = "synthetic_linear";
  check_range(name, "features", options.features, max_elements);
  check_range(name, "examples_per_device", options.examples_per_device, max_examples / devices);
  check_noise(name, options.noise);
  LinearSource source;
  Normals normals(stream_key(seed, "data/true"), 0);
  // Rounded to float so that the learned parameters can reach them.
  for (std::int64_t j = 0; j < options.features; ++j) source.w.push_back(static_cast<float>(normals.next()));
  source.b = static_cast<float>(normals.next());
  source.dataset = std::make_shared<LinearDataset>(
      source.w, source.b, options.noise, options.examples_per_device * devices, stream_key(seed, "data/examples"));
  return source;
}

std::shared_ptr<const Dataset> make_images(const SyntheticImages& options, std::uint64_t seed, Split split) {
  constexpr std::string_view name = "synthetic_images";
  check_range(name, "height", options.height, 65536);
  check_range(name, "width", options.width, 65536);
  check_range(name, "channels", options.channels, 65536);
  check_range(name, "classes", options.classes, 1 << 20);
  const std::int64_t pixels = options.height * options.width;
  if (options.channels > max_elements / pixels || options.classes > max_elements / (pixels * options.channels)) {
    fail_data(fmt::format("{}: {} classes of {}x{}x{} images are too large: their patterns need more than {} bytes",
                          name, options.classes, options.height, options.width, options.channels, max_elements));
  }
  if (split == Split::train) check_range(name, "train", options.train, max_examples - 1);
  if (split == Split::test) check_range(name, "test", options.test, max_examples - 1);
  check_noise(name, options.noise);
  return std::make_shared<ImageDataset>(options, seed, split);
}

Declaration<SyntheticLinear> SyntheticLinear::declaration() {
  return declare::kind<SyntheticLinear>(
      {.path = "synthetic_linear",
       .meaning = "Linear regression: true weights, true bias, inputs and noise are drawn from normal distributions. "
                  "At its end, the run prints the learned and the true parameters.",
       .example = "source: {synthetic_linear: {features: 5, examples_per_device: 100, noise: 0.1}}"},
      field(&SyntheticLinear::features,
            {.path = "features", .low = 1, .meaning = "Number of features of an example.", .example = "features: 5"}),
      field(&SyntheticLinear::examples_per_device, {.path = "examples_per_device",
                                                    .low = 1,
                                                    .meaning = "Number of examples per logical device.",
                                                    .example = "examples_per_device: 100"}),
      field(&SyntheticLinear::noise, {.path = "noise",
                                      .high = declare::unbounded,
                                      .meaning = "Standard deviation of the noise added to the targets.",
                                      .example = "noise: 0.1"}));
}

Source SyntheticLinear::open(const Opening& opening) const {
  LinearSource linear = make_linear(*this, opening.seed, opening.devices);
  Source source;
  source.train = std::move(linear.dataset);
  source.truths = {{"dense_0.kernel", std::move(linear.w)}, {"dense_0.bias", {linear.b}}};
  return source;
}

Declaration<SyntheticImages> SyntheticImages::declaration() {
  return declare::kind<SyntheticImages>(
      {.path = "synthetic_images",
       .meaning = "Synthetic images: a random pattern for each class plus normal noise. Each image is generated from "
                  "the seed when it is read.",
       .example = "source: {synthetic_images: {height: 32, width: 32, channels: 3, train: 50000}}"},
      field(&SyntheticImages::height,
            {.path = "height", .low = 1, .high = 65536, .meaning = "Height of an image.", .example = "height: 32"}),
      field(&SyntheticImages::width,
            {.path = "width", .low = 1, .high = 65536, .meaning = "Width of an image.", .example = "width: 32"}),
      field(&SyntheticImages::channels,
            {.path = "channels", .low = 1, .high = 65536, .meaning = "Number of channels.", .example = "channels: 3"}),
      field(&SyntheticImages::classes, {.path = "classes",
                                        .low = 2,
                                        .high = 1e6,
                                        .meaning = "Number of classes; labels are 0 to classes - 1.",
                                        .example = "classes: 10"}),
      field(&SyntheticImages::train,
            {.path = "train", .low = 1, .meaning = "Number of training examples.", .example = "train: 50000"}),
      field(&SyntheticImages::test, {.path = "test",
                                     .low = 0,
                                     .meaning = "Number of test examples; 0 for no test split.",
                                     .example = "test: 10000"}),
      field(&SyntheticImages::noise, {.path = "noise",
                                      .high = declare::unbounded,
                                      .meaning = "Standard deviation of the noise.",
                                      .example = "noise: 0.3"}));
}

Source SyntheticImages::open(const Opening& opening) const {
  Source source;
  if (opening.wants(Split::train)) source.train = make_images(*this, opening.seed, Split::train);
  if (test > 0 && opening.wants(Split::test)) source.test = make_images(*this, opening.seed, Split::test);
  return source;
}

}  // namespace pmaptrain::data
