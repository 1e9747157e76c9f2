#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/base/philox.h"
#include "core/data/opening.h"
#include "core/data/synthetic/pixel_noise.h"
#include "core/data/synthetic/synthetic.h"

namespace pmaptrain::data {
namespace {

enum : std::int32_t { ball, box, octahedron };

class VolumeDataset : public Dataset {
 public:
  VolumeDataset(const SyntheticVolumes& o, std::uint64_t seed, Split split)
      : depth_(o.depth),
        height_(o.height),
        width_(o.width),
        size_(split == Split::train ? o.train : o.test),
        scale_(PixelNoise::scale_of(o.noise)),
        key_(stream_key(seed, "data/volumes")),
        lane_(2 * static_cast<std::uint32_t>(split)) {}

  std::int64_t size() const override { return size_; }
  Field input() const override { return {DType::u8, {depth_, height_, width_, 1}}; }
  Field target() const override { return {DType::i32, {}}; }
  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override {
    return std::pair<std::int64_t, std::int64_t>{ball, octahedron};
  }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    const auto row = static_cast<std::uint64_t>(index);
    std::array<std::uint32_t, 8> words;
    philox_row(key_, row, lane_, words);
    const auto label = static_cast<std::int32_t>(below(words[0], octahedron + 1));
    std::memcpy(target, &label, sizeof label);
    if (input == nullptr) return;
    const auto around = static_cast<std::uint8_t>(32 + below(words[1], 64));
    const auto within = static_cast<std::uint8_t>(112 + below(words[2], 112));
    // In 1/8 of a voxel. The solid is within the volume.
    const std::int64_t side = 8 * std::min({depth_, height_, width_});
    const std::int64_t radius = side * 3 / 16 + below(words[3], side / 8 + 1);
    const auto centre = [&](std::uint32_t word, std::int64_t size) {
      const std::int64_t room = std::max<std::int64_t>(8 * size - 2 * octahedron_radius(radius) / 1000, 0);
      return (8 * size - room) / 2 + below(word, room + 1);
    };
    const std::int64_t z = centre(words[4], depth_), y = centre(words[5], height_), x = centre(words[6], width_);
    PixelNoise noisy(scale_, key_, row, lane_ + 1);
    for (std::int64_t d = 0; d < depth_; ++d) {
      for (std::int64_t h = 0; h < height_; ++h) {
        for (std::int64_t w = 0; w < width_; ++w) {
          const bool is_within =
              has(label, radius, std::abs(8 * d + 4 - z), std::abs(8 * h + 4 - y), std::abs(8 * w + 4 - x));
          *input++ = noisy(is_within ? within : around);
        }
      }
    }
  }

 private:
  static std::int64_t below(std::uint32_t word, std::int64_t count) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(word) * static_cast<std::uint64_t>(count) >> 32);
  }

  static constexpr std::int64_t octahedron_radius(std::int64_t of_ball) { return 1465 * of_ball; }  // times 1000

  // Whether a solid has a point at these distances from its centre. All have the volume of a ball of this radius.
  static bool has(std::int32_t label, std::int64_t radius, std::int64_t z, std::int64_t y, std::int64_t x) {
    if (label == ball) return z * z + y * y + x * x <= radius * radius;
    if (label == box) return 1000 * std::max({z, y, x}) <= 806 * radius;
    return 1000 * (z + y + x) <= octahedron_radius(radius);
  }

  std::int64_t depth_, height_, width_, size_;
  std::int64_t scale_;  // of the noise
  PhiloxKey key_;
  std::uint32_t lane_;
};

}  // namespace

std::shared_ptr<const Dataset> make_volumes(const SyntheticVolumes& options, std::uint64_t seed, Split split) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 28;
  if (options.depth > most_elements / options.height / options.width) {
    fail_data(fmt::format("synthetic_volumes: volumes of {}x{}x{} are too large: they have more than {} bytes",
                          options.depth, options.height, options.width, most_elements));
  }
  return std::make_shared<VolumeDataset>(options, seed, split);
}

Declaration<SyntheticVolumes> SyntheticVolumes::declaration() {
  constexpr double most = 1 << 16, most_examples = 1LL << 40;
  const auto size = [&](const char* path, const char* meaning, const char* example) {
    return declare::Key{.path = path, .low = 4, .high = most, .meaning = meaning, .example = example};
  };
  return declare::kind<SyntheticVolumes>(
      {.path = "synthetic_volumes",
       .meaning =
           "Synthetic volumes [depth, height, width, 1] with a ball, a box or an octahedron, which is the class, "
           "of random size, place and brightness, plus normal noise. Each is generated from the seed when it is "
           "read.",
       .example = "source: synthetic_volumes\nsource: {synthetic_volumes: {depth: 16, train: 2000}}"},
      field(&SyntheticVolumes::depth, size("depth", "Depth of a volume.", "depth: 16")),
      field(&SyntheticVolumes::height, size("height", "Height of a volume.", "height: 16")),
      field(&SyntheticVolumes::width, size("width", "Width of a volume.", "width: 16")),
      field(&SyntheticVolumes::train, {.path = "train",
                                       .low = 1,
                                       .high = most_examples,
                                       .meaning = "Number of training examples.",
                                       .example = "train: 2000"}),
      field(&SyntheticVolumes::test, {.path = "test",
                                      .low = 0,
                                      .high = most_examples,
                                      .meaning = "Number of test examples; 0 for no test split.",
                                      .example = "test: 500"}),
      field(&SyntheticVolumes::noise, {.path = "noise",
                                       .high = 1000,
                                       .meaning = "Standard deviation of the noise, where 1 is the range of a voxel.",
                                       .example = "noise: 0.2"}));
}

Source SyntheticVolumes::open(const Opening& opening) const {
  Source source;
  if (opening.wants(Split::train)) source.train = make_volumes(*this, opening.seed, Split::train);
  if (test > 0 && opening.wants(Split::test)) source.test = make_volumes(*this, opening.seed, Split::test);
  source.encoding.classes = {"ball", "box", "octahedron"};
  return source;
}

}  // namespace pmaptrain::data
