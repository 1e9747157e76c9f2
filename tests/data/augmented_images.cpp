// Rotations, colours and parts of images are to the byte what Pillow makes of them (make_augmented.py).
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/augment/color.h"
#include "core/augment/resize.h"
#include "core/augment/rotate.h"
#include "core/data/arrays/array.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

struct Pixels {
  augment::ImageSize size;
  std::int64_t channels = 0;
  std::vector<std::byte> bytes;
};

Pixels fixture(const std::string& name) {
  const data::Array array = data::read_npz("tests/data/augmented.npz", name);
  REQUIRE(array.shape.size() == 3);
  const std::span<const std::byte> bytes = array.bytes.view();
  return {{array.shape[0], array.shape[1]}, array.shape[2], {bytes.begin(), bytes.end()}};
}

// Makes one change, by its amount, of each of some images, and compares the result with Pillow's.
template <class Change>
void check_as_pillow(const std::string& name, const std::vector<std::string>& images,
                     const std::vector<std::string>& amounts, Change change) {
  for (const std::string& image : images) {
    const Pixels from = fixture(image);
    for (const std::string& amount : amounts) {
      INFO(name << " of " << image << " by " << amount);
      Pixels changed = from;
      change(changed, amount);
      CHECK((changed.bytes == fixture(name + "." + image + "." + amount).bytes));
    }
  }
}

const std::vector<std::string> factors = {"0", "0.3", "0.8", "1", "1.2", "2.5"};

}  // namespace

TEST_CASE("images are rotated to the pixels of Pillow's rotate, quarter turns and negative angles too", "[data]") {
  check_as_pillow("rotate", {"rgb", "grey", "square"},
                  {"0", "15", "-15", "30.5", "45", "90", "180", "270", "-123.456", "359.9", "360"},
                  [](Pixels& image, const std::string& angle) {
                    const std::vector<std::byte> from = image.bytes;
                    augment::rotate_image(from, image.size, image.channels, std::stod(angle), image.bytes);
                  });
}

TEST_CASE("brightness, contrast and saturation change to the bytes of Pillow's ImageEnhance", "[data]") {
  check_as_pillow("brightness", {"rgb", "grey", "square", "colours"}, factors,
                  [](Pixels& image, const std::string& by) { augment::change_brightness(image.bytes, std::stod(by)); });
  check_as_pillow("contrast", {"rgb", "grey", "square", "colours"}, factors, [](Pixels& image, const std::string& by) {
    augment::change_contrast(image.bytes, image.channels, std::stod(by));
  });
  check_as_pillow("saturation", {"rgb", "square", "colours"}, factors,
                  [](Pixels& image, const std::string& by) { augment::change_saturation(image.bytes, std::stod(by)); });
}

TEST_CASE("the hue moves to the bytes of Pillow's HSV and back", "[data]") {
  check_as_pillow("hue", {"rgb", "square", "colours"}, {"-0.5", "-0.1", "0", "0.003", "0.05", "0.3", "0.5"},
                  [](Pixels& image, const std::string& turns) { augment::shift_hue(image.bytes, std::stod(turns)); });
}

TEST_CASE("a part of an image is cropped and resized to the pixels of Pillow's BILINEAR", "[data]") {
  const std::vector<std::pair<std::string, augment::Box>> parts = {{"0_0_21_17", {0, 0, {21, 17}}},
                                                                   {"3_2_11_9", {3, 2, {11, 9}}},
                                                                   {"20_16_1_1", {20, 16, {1, 1}}},
                                                                   {"0_5_21_4", {0, 5, {21, 4}}},
                                                                   {"8_0_2_17", {8, 0, {2, 17}}}};
  for (const auto& [name, part] : parts) {
    check_as_pillow("part", {"rgb", "grey"}, {name}, [&box = part](Pixels& image, const std::string&) {
      augment::enlarge_part(image.bytes, image.size, box, image.channels);
    });
  }
}

TEST_CASE("images of any number of channels are rotated and enlarged, each channel like one alone", "[data]") {
  const Pixels grey = fixture("grey");
  Pixels wide = grey, turned = grey, enlarged = grey;
  wide.channels = 5;
  wide.bytes.clear();
  for (const std::byte byte : grey.bytes) wide.bytes.insert(wide.bytes.end(), 5, byte);
  const auto every_fifth = [](const std::vector<std::byte>& bytes, std::size_t channel) {
    std::vector<std::byte> one;
    for (std::size_t i = channel; i < bytes.size(); i += 5) one.push_back(bytes[i]);
    return one;
  };
  const augment::Box part{3, 2, {11, 9}};
  augment::rotate_image(grey.bytes, grey.size, 1, 33, turned.bytes);
  augment::enlarge_part(enlarged.bytes, grey.size, part, 1);
  Pixels wide_turned = wide;
  augment::rotate_image(wide.bytes, wide.size, 5, 33, wide_turned.bytes);
  augment::enlarge_part(wide.bytes, wide.size, part, 5);
  for (std::size_t channel = 0; channel < 5; ++channel) {
    CHECK((every_fifth(wide_turned.bytes, channel) == turned.bytes));
    CHECK((every_fifth(wide.bytes, channel) == enlarged.bytes));
  }
}
