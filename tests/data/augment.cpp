// Random changes of training images: what they do, and what they depend on.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>

#include "core/augment/augmenter.h"
#include "core/augment/cutout.h"
#include "core/augment/random_crop.h"
#include "core/augment/random_flip.h"
#include "core/data/synthetic/synthetic.h"
#include "core/input/batches/batch.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/session_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using test::contains;

namespace {

using Image = std::vector<std::byte>;

constexpr std::int64_t image_height = 5, image_width = 7;

// No value occurs twice in a channel, and none is 0.
Image image_of(std::int64_t channels) {
  Image image(static_cast<std::size_t>(image_height * image_width * channels));
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::byte>(i + 1);
  return image;
}

Image changed(const std::vector<augment::Augmentation>& list, std::int64_t channels, std::int64_t position,
              std::uint64_t seed = 1) {
  Image image = image_of(channels);
  augment::Augmenter(list, {DType::u8, {image_height, image_width, channels}}, seed).apply(position, image.data());
  return image;
}

// The image moved by (down, right), with zeros for what is outside; mirrored first if so.
Image moved(std::int64_t channels, std::int64_t down, std::int64_t right, bool mirrored = false) {
  const Image from = image_of(channels);
  Image to(from.size());
  for (std::int64_t y = 0; y < image_height; ++y) {
    for (std::int64_t x = 0; x < image_width; ++x) {
      const std::int64_t row = y + down, seen = x + right;
      if (row < 0 || row >= image_height || seen < 0 || seen >= image_width) continue;
      const std::int64_t column = mirrored ? image_width - 1 - seen : seen;
      for (std::int64_t c = 0; c < channels; ++c) {
        to[static_cast<std::size_t>((y * image_width + x) * channels + c)] =
            from[static_cast<std::size_t>((row * image_width + column) * channels + c)];
      }
    }
  }
  return to;
}

}  // namespace

TEST_CASE("random_crop is a part of the image padded with zeros, at every position alike often", "[data]") {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    std::map<Image, int> found;
    for (std::int64_t i = 0; i < 2500; ++i) ++found[changed({{augment::RandomCrop{2}}}, channels, i)];
    CHECK(found.size() == 25);
    for (std::int64_t down = -2; down <= 2; ++down) {
      for (std::int64_t right = -2; right <= 2; ++right) {
        INFO(channels << " channels, " << down << ", " << right);
        const int count = found[moved(channels, down, right)];
        CHECK(count > 60);
        CHECK(count < 140);
      }
    }
  }
}

TEST_CASE("random_flip mirrors half of the images", "[data]") {
  for (const std::int64_t channels : {1, 2, 3, 4}) {
    std::map<Image, int> found;
    for (std::int64_t i = 0; i < 1000; ++i) ++found[changed({{augment::RandomFlip{}}}, channels, i)];
    CHECK(found.size() == 2);
    CHECK(found[moved(channels, 0, 0)] > 430);
    CHECK(found[moved(channels, 0, 0, true)] > 430);
  }
}

TEST_CASE("cutout sets a square around a pixel of the image to zero", "[data]") {
  for (const std::int64_t size : {1, 2, 3, 5}) {
    std::set<Image> expected, found;
    for (std::int64_t y = 0; y < image_height; ++y) {
      for (std::int64_t x = 0; x < image_width; ++x) {
        Image image = image_of(3);
        for (std::int64_t i = 0; i < size; ++i) {
          for (std::int64_t j = 0; j < size; ++j) {
            const std::int64_t row = y - size / 2 + i, column = x - size / 2 + j;
            if (row < 0 || row >= image_height || column < 0 || column >= image_width) continue;
            std::memset(image.data() + (row * image_width + column) * 3, 0, 3);
          }
        }
        expected.insert(image);
      }
    }
    for (std::int64_t i = 0; i < 2000; ++i) found.insert(changed({{augment::Cutout{size}}}, 3, i));
    CHECK(found == expected);
  }
}

TEST_CASE("changes are applied in the order of the list", "[data]") {
  // A square that is cut out first moves with the image; cut out last, it may lie in the padding too.
  std::set<Image> crop_first, flip_first;
  for (std::int64_t i = 0; i < 3000; ++i) {
    crop_first.insert(changed({{augment::RandomCrop{1}}, {augment::RandomFlip{}}}, 1, i));
    flip_first.insert(changed({{augment::RandomFlip{}}, {augment::RandomCrop{1}}}, 1, i));
  }
  CHECK(crop_first == flip_first);  // the same pictures, drawn otherwise
  CHECK(crop_first.size() == 18);
  int differ = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Image cut_last = changed({{augment::RandomCrop{2}}, {augment::Cutout{3}}}, 1, i);
    const Image cut_first = changed({{augment::Cutout{3}}, {augment::RandomCrop{2}}}, 1, i);
    differ += cut_last != cut_first ? 1 : 0;
  }
  CHECK(differ > 80);
}

TEST_CASE("a change depends on the seed, its place in the list and the position alone", "[data]") {
  const std::vector<augment::Augmentation> list = {{augment::RandomCrop{2}}, {augment::RandomFlip{}}};
  int seeds = 0, positions = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    CHECK(changed(list, 3, i) == changed(list, 3, i));
    seeds += changed(list, 3, i, 1) != changed(list, 3, i, 2) ? 1 : 0;
    positions += changed(list, 3, i) != changed(list, 3, i + (std::int64_t{1} << 32)) ? 1 : 0;
  }
  CHECK(seeds > 80);
  CHECK(positions > 80);
  // Two flips are drawn independently of each other.
  std::set<bool> same;
  for (std::int64_t i = 0; i < 50; ++i) {
    same.insert(changed({{augment::RandomFlip{}}, {augment::RandomFlip{}}}, 1, i) == image_of(1));
  }
  CHECK(same.size() == 2);
}

TEST_CASE("a batch is filled with changed images, by the position in the sample stream", "[data]") {
  spec::DataSpec spec;
  spec.source = data::SyntheticImages{5, 7, 3, 2, 10, 0, 0.1};
  spec.batch_size = std::int64_t{4};
  spec.remainder = spec::Remainder::mask;
  spec.augment = {{augment::RandomCrop{2}}, {augment::RandomFlip{}}};
  const data::Source source = input::open(spec, 3, 1);
  const BatchPlan plan = input::plan_training(spec, Mesh({{"devices", 1}}), 10);
  const input::Stream stream = input::training_stream(spec, 3, *source.train, 1);
  const augment::Augmenter augmenter(spec.augment, source.train->input(), 3);
  const std::size_t bytes = source.train->input().bytes();
  Image batch(4 * bytes), image(bytes);
  std::vector<std::int32_t> labels(4);
  std::int32_t label = 0;
  for (const std::int64_t step : {0, 2, 5}) {  // step 2 and step 5 are short
    input::fill(*source.train, stream, plan, step,
                {batch.data(), reinterpret_cast<std::byte*>(labels.data()), nullptr, nullptr, bytes, 4});
    const std::int64_t epoch = step / 3, count = plan.examples_in(step % 3);
    for (std::int64_t row = 0; row < 4; ++row) {
      const std::int64_t position = step % 3 * 4 + std::min(row, count - 1);  // padding is the last example
      source.train->read(stream.order().index(epoch, position), image.data(), reinterpret_cast<std::byte*>(&label));
      augmenter.apply(epoch * 10 + position, image.data());
      CHECK(std::equal(image.begin(), image.end(), batch.begin() + row * static_cast<std::int64_t>(bytes)));
      CHECK(labels[static_cast<std::size_t>(row)] == label);
    }
  }
}

TEST_CASE("an augmentation that does not fit the data is refused at its place", "[data]") {
  const auto refusal = [](const auto&... set) {
    return test::refusal([&] { setup_of_text(small_images, {set...}); }, ExitStatus::usage);
  };
  CHECK(refusal("data.augment=[random_crop: 6]") ==
        "random_crop: padding 6 must be less than the sides of the images, which are 6x6 | use at most 5; an eighth of "
        "the side is usual");
  CHECK(refusal("data.augment=[random_flip, cutout: 7]") ==
        "cutout: size 7 is more than a side of the images, which are 6x6 | use at most 6; a quarter to a half of the "
        "side is usual");
  CHECK(contains(refusal("data.augment=[random_flip]", "data.source={values: {inputs: [[1.0]], targets: [[1.0]]}}"),
                 "random_flip changes 8-bit images [height, width, channels]; the inputs are f32[1] | remove it"));
  CHECK(refusal("data.augment=[color_jitter: {brightness: 0.2, saturation: 0.2, hue: 0.1}]") ==
        "color_jitter: saturation is for images of 3 channels, and these have 1 | remove saturation; brightness and "
        "contrast are for images of 1 channel, too");
  CHECK(refusal("data.augment=[color_jitter: {contrast: 0.2, saturation: [1, 1], hue: 0.1}]") ==
        "color_jitter: hue is for images of 3 channels, and these have 1 | remove hue; brightness and contrast are for "
        "images of 1 channel, too");
  CHECK(refusal("data.augment=[color_jitter]") ==
        "color_jitter: brightness, contrast, saturation and hue all stay as they are | for example color_jitter: "
        "{brightness: 0.2, contrast: 0.2}");
  const std::string three = "data.source.synthetic_images.channels=3", four = "data.source.synthetic_images.channels=4";
  CHECK(refusal("data.augment=[color_jitter: {brightness: [1, 1]}]", three) ==
        "color_jitter: brightness, contrast, saturation and hue all stay as they are | for example color_jitter: "
        "{brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}");
  CHECK(refusal("data.augment=[color_jitter: {brightness: 0.2}]", four) ==
        "color_jitter: colours are those of images of 1 or 3 channels, and these have 4 | remove it");
  CHECK(refusal("data.augment=[random_rotation: 15, random_resized_crop]", four) == "accepted");
  CHECK(refusal("data.augment=[color_jitter: {brightness: 0.2, contrast: 0.2}]") == "accepted");
  CHECK(refusal("data.augment=[color_jitter: {saturation: 0.2, hue: 0.1}]", three) == "accepted");
  const std::vector<Diagnostic> errors =
      diagnostics_of([] { setup_of_text(small_images, {"data.augment=[random_flip, cutout: 7, random_crop: 9]"}); });
  REQUIRE(errors.size() == 2);  // all at once, each in its place
  CHECK(errors[0].place.column < errors[1].place.column);
}

TEST_CASE("augmented runs have the same bits on every backend and any number of workers", "[data]") {
  const std::vector<std::string> set = {
      "data.source.synthetic_images.channels=3",
      "data.augment=[random_crop: 2, random_flip, random_rotation: 20, random_resized_crop: {scale: [0.5, 1.0]}, "
      "color_jitter: {brightness: 0.2, contrast: 0.2, saturation: 0.2, hue: 0.1}, cutout: 2]"};
  const auto with = [&](const std::string& more) {
    std::vector<std::string> all = set;
    all.push_back(more);
    return train_setup(setup_of_text(small_images, all));
  };
  const Trained one = with("mesh.workers=1");
  CHECK(one.same_bits(with("mesh.workers=2")));
  CHECK(one.same_bits(with("mesh.workers=3")));
  CHECK_FALSE(one.same_bits(train_setup(setup_of_text(small_images, {set[0]}))));
  CHECK_FALSE(one.same_bits(with("data.seed=7")));
}

TEST_CASE("one batch of all examples is changed anew in every epoch", "[data]") {
  const std::vector<std::string> all = {"data.batch_size=all", "train.duration=3 epochs",
                                        "data.augment=[random_crop: 2]"};
  const setup::Setup setup = setup_of_text(small_images, all);
  CHECK(input::training_stream(setup.spec().data, 0, *setup.source.train, 1).is_random());
  const Trained trained = train_setup(setup);
  CHECK(trained.same_bits(train_setup(setup_of_text(small_images, all))));
  // With a rate of almost nothing, only the images can change the loss.
  std::vector<std::string> still = all;
  still.push_back("optimizer.learning_rate=1.0e-30");
  std::set<double> losses;
  for (const run::Logged& logged : train_setup(setup_of_text(small_images, still)).of<run::Logged>()) {
    losses.insert(logged.measures.front().second);
  }
  CHECK(losses.size() == 3);
}
