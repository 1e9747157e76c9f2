// How often random changes draw what, and that an image becomes what was drawn for its place in the sample stream.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/augment/augmenter.h"
#include "core/augment/color.h"
#include "core/augment/color_jitter.h"
#include "core/augment/random_resized_crop.h"
#include "core/augment/random_rotation.h"
#include "core/augment/rotate.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

augment::Draws draws_at(std::uint64_t position, const std::string& name = "random_rotation") {
  return {stream_key(1, "data/augment/0/" + name), position};
}

declare::Spread within(double low, double high) { return {0, declare::Range{low, high}}; }

// Counts, in ten bins of equal width, of 4000 values that must lie in the range; and checks that they are alike.
template <class Value>
void check_uniform(double low, double high, Value value) {
  std::array<int, 10> counts = {};
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const double x = value(i);
    REQUIRE(x >= low);
    REQUIRE(x <= high);
    ++counts[std::min<std::size_t>(9, static_cast<std::size_t>((x - low) / (high - low) * 10))];
  }
  for (const int count : counts) {
    CHECK(count > 320);
    CHECK(count < 480);
  }
}

augment::ColorChange color_change(const augment::ColorJitter& jitter, std::uint64_t position) {
  return jitter.drawn(draws_at(position, "color_jitter"));
}

// Some image of 3 channels.
std::vector<std::byte> image_of(augment::ImageSize size) {
  std::vector<std::byte> image(static_cast<std::size_t>(size.height * size.width * 3));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i * 37 % 251);
  return image;
}

}  // namespace

TEST_CASE("an angle is drawn uniformly, from both signs of a number or from a range", "[data]") {
  check_uniform(-15, 15, [](std::uint64_t i) { return augment::RandomRotation{{15, {}}}.angle(draws_at(i)); });
  check_uniform(30, 90, [](std::uint64_t i) { return augment::RandomRotation{within(30, 90)}.angle(draws_at(i)); });
  CHECK(augment::RandomRotation{within(90, 90)}.angle(draws_at(7)) == 90);
}

TEST_CASE("factors of colours are drawn uniformly around 1, but never below 0, and turns of the hue around 0",
          "[data]") {
  augment::ColorJitter jitter{{0.2, {}}, {3, {}}, within(0.5, 0.6), {0.1, {}}};
  const auto amount = [&](augment::ColorStep step) {
    return [&jitter, step](std::uint64_t i) { return color_change(jitter, i).amount(step).value(); };
  };
  check_uniform(0.8, 1.2, amount(augment::ColorStep::brightness));
  check_uniform(0, 4, amount(augment::ColorStep::contrast));
  check_uniform(0.5, 0.6, amount(augment::ColorStep::saturation));
  check_uniform(-0.1, 0.1, amount(augment::ColorStep::hue));
  int both = 0;  // one draw says nothing of another
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const augment::ColorChange change = color_change(jitter, i);
    both += *change.amount(augment::ColorStep::brightness) > 1 && *change.amount(augment::ColorStep::hue) > 0 ? 1 : 0;
  }
  CHECK(both > 190);
  CHECK(both < 310);
}

TEST_CASE("steps of color_jitter that cannot change anything are left out", "[data]") {
  const augment::ColorJitter jitter{{0, {}}, within(1, 1), within(1, 1.5), within(0, 0)};
  const augment::ColorChange change = color_change(jitter, 3);
  CHECK_FALSE(change.amount(augment::ColorStep::brightness));
  CHECK_FALSE(change.amount(augment::ColorStep::contrast));
  CHECK(change.amount(augment::ColorStep::saturation));
  CHECK_FALSE(change.amount(augment::ColorStep::hue));
}

TEST_CASE("the steps of color_jitter come in each of 24 orders alike often", "[data]") {
  std::map<std::array<augment::ColorStep, 4>, int> counts;
  for (std::uint64_t i = 0; i < 4800; ++i) ++counts[color_change({{0.2, {}}, {}, {}, {}}, i).order];
  CHECK(counts.size() == 24);
  for (const auto& [order, count] : counts) {
    CHECK(count > 140);
    CHECK(count < 260);
  }
}

TEST_CASE("random_resized_crop draws areas uniformly, ratios by their logarithm and positions where the part fits",
          "[data]") {
  const augment::ImageSize size{1000, 1200};
  const augment::RandomResizedCrop crop{{0.1, 0.3}, {0.5, 2}};  // all of them fit
  const auto part = [&](std::uint64_t i) { return crop.part(size, draws_at(i, "random_resized_crop")); };
  const auto of = [](std::int64_t x) { return static_cast<double>(x); };
  check_uniform(0.099, 0.301, [&](std::uint64_t i) {
    const augment::Box box = part(i);
    REQUIRE((box.top >= 0 && box.top + box.size.height <= size.height));
    REQUIRE((box.left >= 0 && box.left + box.size.width <= size.width));
    return of(box.size.height) * of(box.size.width) / 1.2e6;
  });
  check_uniform(std::log(0.497), std::log(2.013),
                [&](std::uint64_t i) { return std::log(of(part(i).size.width) / of(part(i).size.height)); });
  check_uniform(0, 1, [&](std::uint64_t i) { return of(part(i).top) / of(size.height - part(i).size.height); });
  check_uniform(0, 1, [&](std::uint64_t i) { return of(part(i).left) / of(size.width - part(i).size.width); });
}

TEST_CASE("a part that does not fit is drawn again, and in the end is the largest in the centre", "[data]") {
  const auto part = [](const declare::Range& scale, const declare::Range& ratio, augment::ImageSize size,
                       std::uint64_t i) {
    return augment::RandomResizedCrop{scale, ratio}.part(size, draws_at(i, "random_resized_crop"));
  };
  // No part of the whole area fits unless it is the image.
  CHECK(part({1, 1}, {2, 2}, {20, 20}, 1) == augment::Box{5, 0, {10, 20}});
  CHECK(part({1, 1}, {0.25, 0.5}, {20, 20}, 1) == augment::Box{0, 5, {20, 10}});
  CHECK(part({1, 1}, {1, 1}, {20, 20}, 1) == augment::Box{0, 0, {20, 20}});
  CHECK(part({1, 1}, {0.5, 2}, {30, 20}, 1) == augment::Box{0, 0, {30, 20}});  // or near it: 30x20 has such a ratio
  CHECK(part({1, 1}, {1e30, 1e38}, {3, 3}, 1) == augment::Box{1, 0, {1, 3}});
  // An area of 0.9 with a ratio up to 2 fits a square for small ratios only; most find one within ten draws.
  int central = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const augment::Box box = part({0.85, 0.9}, {0.5, 2}, {100, 100}, i);
    const auto area = static_cast<double>(box.size.height * box.size.width);
    if (box == augment::Box{0, 0, {100, 100}}) {
      ++central;
    } else {
      REQUIRE(area > 8300);
      REQUIRE(area < 9200);
    }
  }
  CHECK(central > 50);  // (1 - ln(1 / 0.875) / ln 2)^10 is 0.12
  CHECK(central < 220);
}

TEST_CASE("an image becomes what is drawn for its position, step by step", "[data]") {
  const augment::ImageSize size{9, 11};
  const std::vector<std::byte> image = image_of(size);
  const auto changed = [&](const augment::AugmentationKind& kind, std::int64_t position) {
    std::vector<std::byte> pixels = image;
    augment::Augmenter({{kind}}, {DType::u8, {size.height, size.width, 3}}, 1).apply(position, pixels.data());
    return pixels;
  };
  const augment::RandomRotation rotation{{60, {}}};
  const augment::RandomResizedCrop crop;
  const augment::ColorJitter jitter{{0.4, {}}, {0.4, {}}, {0.4, {}}, {0.2, {}}};
  for (const std::uint64_t i : {0UL, 1UL, 5UL, 70000UL}) {
    std::vector<std::byte> expected = image;
    augment::rotate_image(image, size, 3, rotation.angle(draws_at(i)), expected);
    CHECK((changed(rotation, static_cast<std::int64_t>(i)) == expected));

    expected = image;
    augment::enlarge_part(expected, size, crop.part(size, draws_at(i, "random_resized_crop")), 3);
    CHECK((changed(crop, static_cast<std::int64_t>(i)) == expected));

    expected = image;
    const augment::ColorChange change = color_change(jitter, i);
    for (const augment::ColorStep step : change.order) {
      const double amount = change.amount(step).value();
      if (step == augment::ColorStep::brightness) augment::change_brightness(expected, amount);
      if (step == augment::ColorStep::contrast) augment::change_contrast(expected, 3, amount);
      if (step == augment::ColorStep::saturation) augment::change_saturation(expected, amount);
      if (step == augment::ColorStep::hue) augment::shift_hue(expected, amount);
    }
    CHECK((changed(jitter, static_cast<std::int64_t>(i)) == expected));
  }
}
