// Label maps: a class for each pixel of an image, or for each position.
#include "core/augment/augmenter.h"
#include "core/augment/color_jitter.h"
#include "core/augment/cutout.h"
#include "core/augment/random_crop.h"
#include "core/augment/random_flip.h"
#include "core/augment/random_resized_crop.h"
#include "core/augment/random_rotation.h"
#include "core/data/arrays/array.h"
#include "core/data/arrays/array_dataset.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

std::shared_ptr<const data::Dataset> with_targets(const TemporaryFolder& folder, const std::string& file,
                                                  data::ArrayMeaning meaning) {
  std::vector<std::string> notes;
  const std::string x = folder.write("x", npy("|u1", "(2, 2, 3)", std::string(12, '\1')));
  return data::make_dataset(data::read_npy(x), data::read_npy(folder.write("y", file)), notes, {}, meaning);
}

}  // namespace

TEST_CASE("integers of several dimensions are labels of pixels where the loss takes classes by softmax", "[data]") {
  const TemporaryFolder folder;
  const std::vector<std::int64_t> labels{0, 1, 2, 0, 1, 255, 2, 2, 0, 0, -1, 7};
  for (const std::string shape : {"(2, 2, 3)", "(2, 2, 3, 1)"}) {
    const auto dataset = with_targets(folder, npy("<i8", shape, raw(labels)), {.label_maps = true});
    CHECK(dataset->target().dtype == DType::i32);
    CHECK(dataset->target().shape == Shape{2, 3});
    CHECK(dataset->label_range() == std::pair<std::int64_t, std::int64_t>{-1, 255});
    std::vector<std::int32_t> read(6);
    dataset->read(1, nullptr, reinterpret_cast<std::byte*>(read.data()));
    CHECK(read == std::vector<std::int32_t>{2, 2, 0, 0, -1, 7});
    dataset->check_intact();
  }
  // The positions of sequences.
  const auto sequences = with_targets(folder, npy("<i8", "(2, 6, 1)", raw(labels)), {.label_maps = true});
  CHECK(sequences->target().dtype == DType::i32);
  CHECK(sequences->target().shape == Shape{6});
  // One-hot rows, and what other losses take.
  CHECK(with_targets(folder, npy("<i8", "(2, 6)", raw(labels)), {.label_maps = true})->target().dtype == DType::f32);
  CHECK(with_targets(folder, npy("<i8", "(2, 2, 3)", raw(labels)), {})->target().dtype == DType::f32);
  const std::vector<float> numbers(12, 1.0F);
  CHECK(with_targets(folder, npy("<f4", "(2, 2, 3)", raw(numbers)), {.label_maps = true})->target().dtype ==
        DType::f32);
  CHECK(error_of([&] {
          with_targets(folder, npy("<i8", "(2, 2, 3)", raw<std::int64_t>({0, 1, 2, 0, 1, 0, 2, 2, 0, 0, 0, 1LL << 40})),
                       {.label_maps = true});
        }) == "the label of example 1 in '" + (folder / "y") +
                  "' is 1099511627776 at [1,1,2], which does not fit 32 bits | ");
}

namespace {

constexpr std::int64_t map_height = 6, map_width = 9, map_pixels = map_height * map_width, unlabelled = 255;

// An image whose pixels are 1, 2, ..., and labels that equal them.
struct Labelled {
  std::vector<std::uint8_t> image;
  std::vector<std::int32_t> labels;
};
Labelled moved_map(const augment::AugmentationKind& kind, std::int64_t position) {
  Labelled pair;
  for (int i = 0; i < map_pixels; ++i) {
    pair.image.push_back(static_cast<std::uint8_t>(i + 1));
    pair.labels.push_back(i + 1);
  }
  const Field input{DType::u8, {map_height, map_width, 1}}, target{DType::i32, {map_height, map_width}};
  augment::check_augment({{kind}}, input, target, unlabelled);
  augment::Augmenter({{kind}}, input, 1, target, unlabelled)
      .apply(position, reinterpret_cast<std::byte*>(pair.image.data()),
             reinterpret_cast<std::byte*>(pair.labels.data()));
  return pair;
}

std::string refused_map(const augment::AugmentationKind& kind, const Field& target, std::optional<std::int64_t> label) {
  return error_of(
      [&] {
        augment::check_augment({{kind}}, {DType::u8, {map_height, map_width, 1}}, target, label);
      },
      ExitStatus::usage);
}

}  // namespace

TEST_CASE("labels move with their pixels, and those of pixels from outside are unlabelled", "[data]") {
  bool has_outside = false;
  for (std::int64_t position = 0; position < 8; ++position) {
    for (const augment::AugmentationKind& kind :
         {augment::AugmentationKind(augment::RandomFlip{}), augment::AugmentationKind(augment::RandomCrop{2}),
          augment::AugmentationKind(augment::RandomRotation{{40, {}}})}) {
      const Labelled pair = moved_map(kind, position);
      for (std::size_t i = 0; i < pair.image.size(); ++i) {
        const bool outside = pair.image[i] == 0;
        has_outside = has_outside || outside;
        REQUIRE(pair.labels[i] == (outside ? static_cast<std::int32_t>(unlabelled) : pair.image[i]));
      }
    }
    // The nearest label of a part, which is a rectangle of the map.
    const Labelled part = moved_map(augment::RandomResizedCrop{{0.3, 0.9}}, position);
    for (std::size_t i = 0; i < part.labels.size(); ++i) {
      const std::int32_t at = part.labels[i] - 1, first = part.labels[i % map_width] - 1;
      const std::int32_t in_row = part.labels[i / map_width * map_width] - 1;
      REQUIRE((at >= 0 && at < map_pixels));
      REQUIRE(at % map_width == first % map_width);
      REQUIRE(at / map_width == in_row / map_width);
    }
    // These change the images alone.
    const augment::Cutout square{3};
    augment::ColorJitter brighter;
    brighter.brightness = {0.4, {}};
    for (const augment::AugmentationKind& kind :
         {augment::AugmentationKind(square), augment::AugmentationKind(brighter)}) {
      const Labelled same = moved_map(kind, position);
      for (std::int32_t i = 0; i < map_pixels; ++i) REQUIRE(same.labels[static_cast<std::size_t>(i)] == i + 1);
    }
  }
  CHECK(has_outside);
}

TEST_CASE("the nearest pixel is the one at the middle", "[data]") {
  const auto resized = [](const std::vector<std::uint8_t>& from, std::int64_t width) {
    std::vector<std::uint8_t> to(static_cast<std::size_t>(width));
    augment::resize_nearest(std::as_bytes(std::span(from)), {1, std::ssize(from)},
                            std::as_writable_bytes(std::span(to)), {1, width}, 1);
    return to;
  };
  // As Pillow has it.
  CHECK(resized({1, 2, 3}, 6) == std::vector<std::uint8_t>{1, 1, 2, 2, 3, 3});
  CHECK(resized({1, 2, 3, 4}, 2) == std::vector<std::uint8_t>{2, 4});
  CHECK(resized({1, 2, 3, 4, 5}, 3) == std::vector<std::uint8_t>{1, 3, 5});
  CHECK(resized({1, 2, 3, 4, 5}, 5) == std::vector<std::uint8_t>{1, 2, 3, 4, 5});
}

TEST_CASE("augmentations say what they need of targets of pixels", "[data]") {
  const Field labels{DType::i32, {map_height, map_width}};
  CHECK(
      refused_map(augment::RandomCrop{2}, labels, std::nullopt) ==
      "random_crop takes pixels from outside of the image, which have no label | write loss: {softmax_cross_entropy: "
      "{ignore_label: 255}}, with a number that is no class: it is the label of such pixels, which then do not count; "
      "random_flip and random_resized_crop take no pixels from outside");
  CHECK(refused_map(augment::RandomCrop{2}, labels, 255) == "accepted");
  CHECK(refused_map(augment::RandomFlip{}, labels, std::nullopt) == "accepted");
  CHECK(refused_map(augment::RandomFlip{}, {DType::f32, {map_height, map_width, 2}}, std::nullopt) == "accepted");
  CHECK(
      refused_map(augment::RandomRotation{{10, {}}}, {DType::f32, {map_height, map_width, 2}}, std::nullopt)
          .starts_with("random_rotation takes pixels from outside of the image, for which the targets have no value"));
  CHECK(refused_map(augment::RandomFlip{}, {DType::i32, {3, 3}}, 255) ==
        "random_flip moves pixels of images [6,9,1], but what the targets [3,3] say of pixels cannot move with them | "
        "remove it, or save targets of the size of the images");
  CHECK(refused_map(augment::Cutout{2}, {DType::i32, {3, 3}}, 255) == "accepted");
  CHECK(refused_map(augment::RandomFlip{}, {DType::i32, {}}, std::nullopt) == "accepted");
}
