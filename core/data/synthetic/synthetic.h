// Datasets whose examples are computed when they are read. The bits of example i do not depend on the order of reading.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/data/opening.h"

namespace pmaptrain::data {

struct SyntheticLinear {
  static constexpr bool is_drawn = true;
  static constexpr bool has_test = false;
  std::int64_t features = 5;
  std::int64_t examples_per_device = 100;
  double noise = 0.1;

  static Declaration<SyntheticLinear> declaration();
  Source open(const Opening& opening) const;
};
struct SyntheticImages {
  static constexpr bool is_drawn = true;
  std::int64_t height = 32, width = 32, channels = 3, classes = 10;
  std::int64_t train = 50000, test = 10000;
  double noise = 0.3;

  static Declaration<SyntheticImages> declaration();
  Source open(const Opening& opening) const;
};
struct SyntheticMasks {
  static constexpr bool is_drawn = true;
  std::int64_t height = 64, width = 64, channels = 1;
  std::int64_t train = 2000, test = 500;
  double noise = 0.1;

  static Declaration<SyntheticMasks> declaration();
  Source open(const Opening& opening) const;
};

struct SyntheticVolumes {
  static constexpr bool is_drawn = true;
  std::int64_t depth = 16, height = 16, width = 16;
  std::int64_t train = 4000, test = 1000;
  double noise = 0.2;

  static Declaration<SyntheticVolumes> declaration();
  Source open(const Opening& opening) const;
};

struct SyntheticSignals {
  static constexpr bool is_drawn = true;
  std::int64_t positions = 64;
  std::optional<std::int64_t> shortest;
  std::int64_t classes = 4;
  std::int64_t train = 4000, test = 1000;
  double noise = 2.0;

  static Declaration<SyntheticSignals> declaration();
  bool has_lengths() const { return shortest.value_or(positions) < positions; }
  Source open(const Opening& opening) const;
};

// y = x · w + b + noise · n, with x: f32[features] and y: f32[1]. x, n, w and b are normal; w and b are from the stream
// "data/true", examples from "data/examples".
struct LinearSource {
  std::shared_ptr<const Dataset> dataset;  // examples_per_device × devices examples
  std::vector<double> w;                   // [features]; exact floats
  double b = 0.0;
};
LinearSource make_linear(const SyntheticLinear& options, std::uint64_t seed, std::int64_t devices);

// Images u8[height,width,channels] with uniform labels 0 to classes - 1. Each class has a smooth random pattern; an
// image is the pattern of its class shifted by a few pixels, plus noise of standard deviation `noise` (relative to the
// range of a pixel). The noise is a sum of four uniform bytes, which is approximately normal. All arithmetic is in
// integers, so the bits are the same on every machine. The test split has the same patterns and different images.
std::shared_ptr<const Dataset> make_images(const SyntheticImages& options, std::uint64_t seed, Split split);

// Images u8[height,width,channels] with a label for each pixel, i32[height,width]: 0 background, 1 disc, 2 rectangle.
// An image has two to four discs and rectangles of random size, place and brightness; the later cover the earlier. The
// brightness does not tell the class. Noise as in make_images().
std::shared_ptr<const Dataset> make_masks(const SyntheticMasks& options, std::uint64_t seed, Split split);

// Volumes u8[depth,height,width,1] with uniform labels 0 to 2: a ball, a box or an octahedron of the same mean volume,
// of random size, place and brightness. Noise as in make_images().
std::shared_ptr<const Dataset> make_volumes(const SyntheticVolumes& options, std::uint64_t seed, Split split);

// Signals f32[positions,1] with uniform labels k of 0 to classes - 1: sin(2π · ((k + 1) / (2 · (classes + 1)) · t +
// phase) with a random phase, plus normal noise. With `shortest` the lengths are uniform, and behind them are zeros.
// The best decision for a signal of T positions, which takes the frequency of the most energy, is right with the
// probability Σₙ (-1)ⁿ · C(classes - 1, n) / (n + 1) · exp(-n / (n + 1) · T / (4 · noise²)), for n = 0 to classes - 1
// (Proakis, "Digital Communications", on noncoherent orthogonal signals).
std::shared_ptr<const Dataset> make_signals(const SyntheticSignals& options, std::uint64_t seed, Split split);

}  // namespace pmaptrain::data
