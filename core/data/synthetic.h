// Datasets that are computed, example by example, when they are read: example i has the same bits whatever is read
// before it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/data/dataset.h"
#include "core/spec/spec.h"

namespace pmaptrain::data {

// y = x · w + b + noise · n with normal x: f32[features] and n; y: f32[1]. The true w and b are normal, from the
// stream "data/true"; examples are from "data/examples".
struct LinearSource {
  std::shared_ptr<const Dataset> dataset;  // examples_per_device × devices examples
  std::vector<double> w;                   // [features]; exact floats
  double b = 0.0;
};
LinearSource make_linear(const spec::SyntheticLinear& options, std::uint64_t seed, std::int64_t devices);

// Images u8[height,width,channels] with labels 0 to classes - 1, drawn uniformly. Each class has a smooth random
// pattern; an image is its class's pattern shifted by a few pixels, plus noise of standard deviation `noise` (of a
// range of 1), which is the sum of four uniform bytes and so close to normal. Only integers are used, so that the bits
// are the same on every machine. The test split has the same patterns and other images.
enum class Split : std::uint32_t { train = 0, test = 1 };
std::shared_ptr<const Dataset> make_images(const spec::SyntheticImages& options, std::uint64_t seed, Split split);

}  // namespace pmaptrain::data
