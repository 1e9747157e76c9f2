// Equations on rows of features, which several layers share: matrices of several dimensions, and the layer norm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/equations/arithmetic.h"
#include "core/graph/builder.h"

namespace pmaptrain::layers {

using namespace equations;

// x [..., C] times the kernel as a matrix [C, n], plus the bias [n] before the sum is rounded: [..., n]. The kernel is
// cast to the type of x.
Value product_of_rows(Builder& b, Value x, Value kernel, Shape matrix, std::optional<Value> bias);

// The sum of the terms [..., n] that devices along `axes` have, plus the bias [n] before the sum is rounded to `dtype`.
Value sum_of_terms(Builder& b, Value term, AxisSet axes, std::optional<Value> bias, DType dtype);

// x [B, T, ...] at one position: [B, ...].
Value at_position(Builder& b, Value x, std::int64_t position);

// The elements over which the statistics of an example are: x is reshaped to `shape` (without the batch dimension), and
// reduced over `dims` (with it).
struct Statistics {
  Shape shape;
  std::vector<std::int64_t> dims;
  double epsilon = 0;
  bool centred = true;  // whether the mean is subtracted

  double count() const {
    double elements = 1;
    for (const std::int64_t dim : dims) elements *= static_cast<double>(shape[static_cast<std::size_t>(dim) - 1]);
    return elements;
  }
};
// Over the last dimension of `shape`.
Statistics over_last(const Shape& shape, double epsilon, bool centred);
// Whether they are over the first dimension of an example too, as those of sequences are over positions.
bool over_positions(const Statistics& of);
// (x - mean) / √(variance + ε), or x / √(mean of x² + ε), in the type of x [B, shape...]. With `lengths`, i32[B], only
// so many of the first dimension of an example count in its statistics.
Value normalised(Builder& b, Value x, const Statistics& of, std::optional<Value> lengths = std::nullopt);
// (x - mean) / √(variance + ε) over the last dimension.
Value layer_normalised(Builder& b, Value x, double epsilon);

// The mean and the variance of each channel, [C], and x - mean without a derivative by the mean.
struct Moments {
  Value mean, variance;
  std::optional<Value> centred = {};
};
// `vector` [C] repeated in `shape`, whose last dimension are the channels.
Value over_channels(Builder& b, Value vector, const Shape& shape);
// (x - mean) · scale / √(variance + epsilon) + bias, without the scale or the bias that a norm does not have; all but x
// are of the last dimension.
Value batch_normalised(Builder& b, Value x, const Moments& moments, double epsilon, std::optional<Value> scale,
                       std::optional<Value> bias);

// The mean over all dimensions between the first and the last, summed in the type `storage`. With `lengths`, i32[B], of
// the second dimension only so many positions count, and x is 0 at the others; of none the mean is 0.
Value mean_of_positions(Builder& b, Value x, DType storage, std::optional<Value> lengths = std::nullopt);

// The numbers that divide `number`, for errors: "1, 2, 3, 6".
std::string divisors_of(std::int64_t number);

}  // namespace pmaptrain::layers
