// What random changes of images may not be, beyond the texts in errors/.
#include <string>

#include "core/augment/color_jitter.h"
#include "core/augment/random_resized_crop.h"
#include "core/augment/random_rotation.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/spec/errors_of.h"

using namespace pmaptrain;

namespace {

// The errors of a config with this list of augmentations.
std::string errors_with(const std::string& augment) {
  return errors_of(base_with("data: {source: fashion_mnist, batch_size: 128, augment: [" + augment + "]}"));
}

}  // namespace

TEST_CASE("a range begins with its least number", "[spec]") { CHECK(errors_with("random_rotation: [10, 10]").empty()); }

TEST_CASE("one number in place of a range is a distance to both sides", "[spec]") {
  CHECK(errors_with("color_jitter: {hue: 0.7}")
            .starts_with("c.yaml:1:78: error: hue takes a number from 0 to 0.5, or a list of two numbers"));
  CHECK(errors_with("random_rotation: fast")
            .ends_with("not 'fast'\n    1 | data: {source: fashion_mnist, batch_size: "
                       "128, augment: [random_rotation: fast]}\n      |                "
                       "                                                           "
                       "^~~~\n  help: for example degrees: 15\n"));
}

TEST_CASE("a rotation needs its angles, the other augmentations have torchvision's defaults", "[spec]") {
  const std::string list = "random_rotation: 15, random_resized_crop: {}, color_jitter: {hue: [-0.1, 0.2]}";
  const spec::Loaded loaded = spec::load_text(
      base_with("data: {source: fashion_mnist, batch_size: 128, augment: [" + list + "]}"), "c.yaml", "/base", {});
  const auto& augments = loaded.spec.data.augment;
  REQUIRE(augments.size() == 3);
  const auto& rotation = *augments[0].kind.as<augment::RandomRotation>();
  CHECK(rotation.degrees.distance == 15);
  CHECK_FALSE(rotation.degrees.range.has_value());
  const auto& crop = *augments[1].kind.as<augment::RandomResizedCrop>();
  CHECK(crop.scale.low == 0.08);
  CHECK(crop.scale.high == 1);
  CHECK(crop.ratio.low == 0.75);
  CHECK(crop.ratio.high == 4.0 / 3);
  const auto& jitter = *augments[2].kind.as<augment::ColorJitter>();
  CHECK(jitter.brightness.distance == 0);
  CHECK_FALSE(jitter.contrast.range.has_value());
  REQUIRE(jitter.hue.range.has_value());
  CHECK(jitter.hue.range->low == -0.1);
  CHECK(jitter.hue.range->high == 0.2);
}

TEST_CASE("the resolved config has augmentations as they are written, with their defaults", "[spec]") {
  const std::string list = "random_rotation: [0, 90], random_resized_crop, color_jitter: {brightness: 0.2}";
  const spec::Loaded loaded = spec::load_text(
      base_with("data: {source: fashion_mnist, batch_size: 128, augment: [" + list + "]}"), "c.yaml", "/base", {});
  CHECK(loaded.resolved.find(
            "augment: [{random_rotation: {degrees: [0.0, 90.0]}}, {random_resized_crop: {scale: [0.08, 1.0], ratio: "
            "[0.75, 1.3333333333333333]}}, {color_jitter: {brightness: 0.2, contrast: 0.0, saturation: 0.0, hue: "
            "0.0}}]") != std::string::npos);
  CHECK(spec::load_text(loaded.resolved, "resolved.yaml", "/base", {}).resolved == loaded.resolved);
}
