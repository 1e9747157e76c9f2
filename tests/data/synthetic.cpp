#include "core/data/synthetic/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/input/open.h"
#include "tests/catch.h"

using namespace pmaptrain;

namespace {

struct Picture {
  std::vector<std::uint8_t> pixels;
  std::int32_t label = 0;
  friend bool operator==(const Picture&, const Picture&) = default;
};
Picture image(const data::Dataset& dataset, std::int64_t index) {
  Picture result;
  result.pixels.resize(dataset.input().bytes());
  dataset.read(index, reinterpret_cast<std::byte*>(result.pixels.data()), reinterpret_cast<std::byte*>(&result.label));
  return result;
}

}  // namespace

TEST_CASE("synthetic_linear is w x + b with noise, and returns the true parameters", "[data]") {
  spec::DataSpec spec;
  spec.source = data::SyntheticLinear{5, 100, 0.1};
  const data::Source source = input::open(spec, 0, 8);
  CHECK(source.train->size() == 800);
  CHECK(source.train->input().shape == Shape{5});
  CHECK(source.train->target().shape == Shape{1});
  CHECK(source.test == nullptr);
  REQUIRE(source.truths.size() == 2);
  CHECK(source.truths[0].parameter == "dense_0.kernel");
  CHECK(source.truths[1].parameter == "dense_0.bias");
  const std::vector<double>& w = source.truths[0].values;
  REQUIRE(w.size() == 5);
  double squares = 0;
  for (std::int64_t i = 0; i < 800; ++i) {
    float x[5], y = 0;
    source.train->read(i, reinterpret_cast<std::byte*>(x), reinterpret_cast<std::byte*>(&y));
    double noise = static_cast<double>(y) - source.truths[1].values[0];
    for (std::size_t j = 0; j < 5; ++j) noise -= static_cast<double>(x[j]) * w[j];
    squares += noise * noise;
  }
  CHECK(std::sqrt(squares / 800) == Approx(0.1).epsilon(0.1));
}

TEST_CASE("true parameters depend on the seed alone, and data.seed overrides the top-level seed", "[data]") {
  spec::DataSpec spec;
  spec.source = data::SyntheticLinear{};
  const auto truth = [&](std::uint64_t seed, std::int64_t devices) {
    return input::open(spec, seed, devices).truths[0].values;
  };
  CHECK(truth(0, 1) == truth(0, 8));
  CHECK(truth(0, 1) != truth(1, 1));
  const std::vector<double> of_seed_1 = truth(1, 1);
  spec.seed = 1;
  CHECK(truth(0, 1) == of_seed_1);
}

TEST_CASE("a synthetic image has the same bits whatever was read before, and other bits elsewhere", "[data]") {
  const data::SyntheticImages options;
  const auto train = data::make_images(options, 0, data::Split::train);
  const auto test = data::make_images(options, 0, data::Split::test);
  CHECK(train->size() == 50000);
  CHECK(test->size() == 10000);
  CHECK(train->input().dtype == DType::u8);
  CHECK(train->input().shape == Shape{32, 32, 3});
  CHECK(train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 9});
  const Picture last = image(*train, 49999);
  const Picture first = image(*train, 0);
  CHECK(image(*train, 49999) == last);
  CHECK(image(*data::make_images(options, 0, data::Split::train), 0) == first);
  CHECK_FALSE(first == last);
  CHECK_FALSE(image(*test, 0) == first);
  CHECK_FALSE(image(*data::make_images(options, 1, data::Split::train), 0) == first);
}

TEST_CASE("synthetic images of the test split can be classified, and all classes occur", "[data]") {
  const data::SyntheticImages options;
  const auto train = data::make_images(options, 3, data::Split::train);
  const auto test = data::make_images(options, 3, data::Split::test);
  const std::size_t size = train->input().bytes();
  std::vector<std::vector<double>> means(10, std::vector<double>(size));
  std::vector<double> counts(10);
  for (std::int64_t i = 0; i < 500; ++i) {
    const Picture example = image(*train, i);
    const auto label = static_cast<std::size_t>(example.label);
    REQUIRE(label < 10);
    counts[label] += 1;
    for (std::size_t p = 0; p < size; ++p) means[label][p] += example.pixels[p];
  }
  for (std::size_t k = 0; k < 10; ++k) {
    CHECK(counts[k] >= 20);
    for (double& value : means[k]) value /= counts[k];
  }
  int right = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    const Picture example = image(*test, i);
    std::vector<double> distances(10);
    for (std::size_t k = 0; k < 10; ++k) {
      for (std::size_t p = 0; p < size; ++p) distances[k] += std::pow(example.pixels[p] - means[k][p], 2);
    }
    right += std::min_element(distances.begin(), distances.end()) - distances.begin() == example.label ? 1 : 0;
  }
  CHECK(right >= 90);
}

TEST_CASE("synthetic masks have each class, and brightness alone does not tell discs from rectangles", "[data]") {
  const data::SyntheticMasks options;
  const auto train = data::make_masks(options, 0, data::Split::train);
  const auto read = [&](const data::Dataset& dataset, std::int64_t index) {
    std::pair<std::vector<std::uint8_t>, std::vector<std::int32_t>> one;
    one.first.resize(dataset.input().bytes());
    one.second.resize(static_cast<std::size_t>(numel(dataset.target().shape)));
    dataset.read(index, reinterpret_cast<std::byte*>(one.first.data()),
                 reinterpret_cast<std::byte*>(one.second.data()));
    return one;
  };
  CHECK(train->size() == 2000);
  CHECK(train->target().dtype == DType::i32);
  CHECK(train->target().shape == Shape{64, 64});
  std::vector<double> counts(3), sums(3);
  for (std::int64_t i = 0; i < 200; ++i) {
    const auto [pixels, labels] = read(*train, i);
    for (std::size_t p = 0; p < labels.size(); ++p) {
      const auto label = static_cast<std::size_t>(labels[p]);
      REQUIRE(label < 3);
      ++counts[label];
      sums[label] += pixels[p];
    }
  }
  CHECK(counts[0] > 0.5 * 200 * 4096);
  CHECK(counts[1] > 0.04 * 200 * 4096);
  CHECK(counts[2] > 0.04 * 200 * 4096);
  CHECK(std::abs(sums[1] / counts[1] - sums[2] / counts[2]) < 10);
  CHECK(sums[1] / counts[1] - sums[0] / counts[0] > 50);
  const auto test = data::make_masks(options, 0, data::Split::test);
  CHECK(read(*train, 7) == read(*data::make_masks(options, 0, data::Split::train), 7));
  CHECK_FALSE(read(*train, 7) == read(*test, 7));
  CHECK_FALSE(read(*train, 7) == read(*data::make_masks(options, 1, data::Split::train), 7));
  // Small, odd, and of three channels.
  CHECK(read(*data::make_masks({5, 7, 3, 4, 0, 0.1}, 0, data::Split::train), 3).first.size() == 105);
  CHECK_THROWS_AS(data::make_masks({65536, 65536, 1, 1, 0, 0.1}, 0, data::Split::train), Error);
}

TEST_CASE("synthetic volumes have solids of about the same volume, and brightness alone does not tell them", "[data]") {
  data::SyntheticVolumes options;
  options.noise = 0;
  const auto train = data::make_volumes(options, 0, data::Split::train);
  const auto read = [](const data::Dataset& dataset, std::int64_t index) {
    std::pair<std::vector<std::uint8_t>, std::int32_t> one;
    one.first.resize(dataset.input().bytes());
    dataset.read(index, reinterpret_cast<std::byte*>(one.first.data()), reinterpret_cast<std::byte*>(&one.second));
    return one;
  };
  CHECK(train->size() == 4000);
  CHECK(train->input().shape == Shape{16, 16, 16, 1});
  CHECK(train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 2});
  std::vector<double> counts(3), voxels(3), brightness(3);
  for (std::int64_t i = 0; i < 600; ++i) {
    const auto [values, label] = read(*train, i);
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    REQUIRE(*least < *most);
    const auto at = static_cast<std::size_t>(label);
    ++counts[at];
    voxels[at] += static_cast<double>(std::count(values.begin(), values.end(), *most));
    brightness[at] += *most;
    // Nothing of the solid is cut off: it has a voxel of the surroundings on all sides, but for rounding.
    CHECK(std::count(values.begin(), values.begin() + 256, *most) < 80);
  }
  for (std::size_t label = 0; label < 3; ++label) {
    CHECK(counts[label] > 150);
    CHECK(voxels[label] / counts[label] == Approx(voxels[0] / counts[0]).epsilon(0.1));
    CHECK(brightness[label] / counts[label] == Approx(brightness[0] / counts[0]).epsilon(0.1));
  }
  const auto test = data::make_volumes(options, 0, data::Split::test);
  CHECK(read(*train, 7) == read(*data::make_volumes(options, 0, data::Split::train), 7));
  CHECK_FALSE(read(*train, 7) == read(*test, 7));
  CHECK_FALSE(read(*train, 7) == read(*data::make_volumes(options, 1, data::Split::train), 7));
  CHECK(read(*data::make_volumes({5, 7, 4, 9, 0, 0.1}, 0, data::Split::train), 3).first.size() == 140);
  CHECK_THROWS_AS(data::make_volumes({65536, 65536, 4, 1, 0, 0.1}, 0, data::Split::train), Error);
}

TEST_CASE("synthetic sizes out of range are refused before memory is taken", "[data]") {
  const auto refuse = [](data::SyntheticImages o) { data::make_images(o, 0, data::Split::train); };
  data::SyntheticImages huge;
  huge.height = huge.width = 65536;
  CHECK_THROWS_AS(refuse(huge), Error);
  data::SyntheticImages none;
  none.classes = 0;
  CHECK_THROWS_AS(refuse(none), Error);
  data::SyntheticImages loud;
  loud.noise = std::nan("");
  CHECK_THROWS_AS(refuse(loud), Error);
  CHECK_THROWS_AS(data::make_linear({5, std::int64_t{1} << 62, 0.1}, 0, 8), Error);
  // Odd and tiny sizes are fine.
  const auto tiny = data::make_images({1, 7, 2, 1, 3, 0, 0.0}, 0, data::Split::train);
  CHECK(image(*tiny, 2).pixels.size() == 14);
}

TEST_CASE("synthetic signals are tones of their class with noise, and zeros behind their lengths", "[data]") {
  data::SyntheticSignals options;
  options.positions = 40;
  options.shortest = 10;
  options.train = 300;
  options.noise = 0.1;
  const auto train = data::make_signals(options, 0, data::Split::train);
  REQUIRE(train->has_lengths());
  CHECK(train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 3});
  const auto read = [](const data::Dataset& dataset, std::int64_t index) {
    std::vector<float> values(40);
    std::int32_t label = 0;
    dataset.read(index, reinterpret_cast<std::byte*>(values.data()), reinterpret_cast<std::byte*>(&label));
    return std::pair(values, label);
  };
  std::int32_t shortest = 40, longest = 0;
  std::vector<std::int64_t> of_class(4);
  for (std::int64_t i = 0; i < train->size(); ++i) {
    const auto [values, label] = read(*train, i);
    const std::int32_t length = train->length(i);
    shortest = std::min(shortest, length), longest = std::max(longest, length);
    ++of_class.at(static_cast<std::size_t>(label));
    CHECK(std::all_of(values.begin() + length, values.end(), [](float value) { return value == 0; }));
    // The frequency of the most energy.
    std::vector<double> energy;
    for (int k = 1; k <= 4; ++k) {
      double along = 0, across = 0;
      for (std::int32_t t = 0; t < length; ++t) {
        const double angle = 2 * 3.14159265358979 * k / 10 * t,
                     value = static_cast<double>(values[static_cast<std::size_t>(t)]);
        along += value * std::cos(angle), across += value * std::sin(angle);
      }
      energy.push_back(along * along + across * across);
    }
    CHECK(std::max_element(energy.begin(), energy.end()) - energy.begin() == label);
  }
  CHECK(shortest == 10);
  CHECK(longest == 40);
  for (const std::int64_t count : of_class) CHECK((count > 50 && count < 100));
  const auto test = data::make_signals(options, 0, data::Split::test);
  CHECK(read(*train, 7) == read(*data::make_signals(options, 0, data::Split::train), 7));
  CHECK_FALSE(read(*train, 7) == read(*test, 7));
  CHECK_FALSE(read(*train, 7) == read(*data::make_signals(options, 1, data::Split::train), 7));
  options.shortest.reset();
  CHECK_FALSE(data::make_signals(options, 0, data::Split::train)->has_lengths());
  options.shortest = 41;
  CHECK_THROWS_AS(data::make_signals(options, 0, data::Split::train), Error);
}
