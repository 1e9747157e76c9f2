// What the targets of a dataset, and inputs of whole numbers, seem to be.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include "core/input/inspect.h"

namespace pmaptrain::input {
namespace {

constexpr std::int64_t judged_examples = 1000;  // by which rows of targets are judged

double number_at(const std::byte* bytes, DType dtype) {
  const auto as = [bytes](auto number) {
    std::memcpy(&number, bytes, sizeof number);
    return static_cast<double>(number);
  };
  if (dtype == DType::u8) return as(std::uint8_t{});
  return dtype == DType::f64 ? as(double{}) : dtype == DType::f32 ? as(float{}) : as(std::int32_t{});
}

// The one number of an example's target.
double number_of(const data::Dataset& dataset, std::int64_t index) {
  std::byte bytes[sizeof(double)];
  dataset.read(index, nullptr, bytes);
  return number_at(bytes, dataset.target().dtype);
}

double skewness(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0, squares = 0, cubes = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) {
    const double distance = value - mean;
    squares += distance * distance / count;
    cubes += distance * distance * distance / count;
  }
  return squares > 0 ? cubes / std::pow(squares, 1.5) : 0;
}

}  // namespace

TargetRows kind_of_rows(const data::Dataset& dataset) {
  const auto width = static_cast<std::size_t>(numel(dataset.target().shape));
  if (dataset.target().dtype != DType::f32 || width < 2) return TargetRows::numbers;
  std::vector<float> row(width);
  bool is_one_hot = true;
  for (std::int64_t i = 0; i < std::min(dataset.size(), judged_examples); ++i) {
    dataset.read(i, nullptr, reinterpret_cast<std::byte*>(row.data()));
    const auto ones = std::count(row.begin(), row.end(), 1.0F), zeros = std::count(row.begin(), row.end(), 0.0F);
    if (ones + zeros != static_cast<std::ptrdiff_t>(width)) return TargetRows::numbers;
    is_one_hot = is_one_hot && ones == 1;
  }
  return is_one_hot ? TargetRows::one_hot : TargetRows::zeros_and_ones;
}

bool has_one_target(const data::Dataset& train, const data::Dataset* more) {
  if (train.size() < 2) return false;
  std::vector<std::byte> first(train.target().bytes()), other(first.size());
  train.read(0, nullptr, first.data());
  const auto has_it_alone = [&](const data::Dataset& dataset) {
    for (std::int64_t i = 0; i < dataset.size(); ++i) {
      dataset.read(i, nullptr, other.data());
      if (first != other) return false;
    }
    return true;
  };
  return has_it_alone(train) && (more == nullptr || has_it_alone(*more));
}

bool has_long_tail(const data::Dataset& dataset) {
  constexpr std::int64_t least_examples = 30;
  if (numel(dataset.target().shape) != 1 || dataset.size() < least_examples) return false;
  std::vector<double> values, logarithms;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const double value = number_of(dataset, i);
    if (!(value >= 0)) return false;
    values.push_back(value);
    logarithms.push_back(std::log1p(value));
  }
  const double skew = skewness(values);
  return skew > 1 && std::abs(skewness(logarithms)) < skew / 2;
}

std::optional<double> mean_of_counts(const data::Dataset& dataset) {
  constexpr std::int64_t least_examples = 10;
  if (numel(dataset.target().shape) != 1 || dataset.size() < least_examples) return std::nullopt;
  const auto examples = static_cast<double>(dataset.size());
  double mean = 0, squares = 0;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const double value = number_of(dataset, i);
    if (!(value >= 0) || value != std::trunc(value)) return std::nullopt;
    mean += value / examples;
    squares += value * value / examples;
  }
  if (!(mean > 0 && squares - mean * mean >= mean)) return std::nullopt;
  return mean;
}

std::optional<WholeNumbers> whole_numbers(const data::Dataset& dataset, NumbersOf which) {
  constexpr double bound = 1 << 24;  // above, floats have whole numbers alone
  const Field field = which == NumbersOf::inputs ? dataset.input() : dataset.target();
  std::vector<std::byte> input(dataset.input().bytes()), target(dataset.target().bytes());
  const std::vector<std::byte>& bytes = which == NumbersOf::inputs ? input : target;
  std::set<std::int64_t> found;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    dataset.read(i, which == NumbersOf::inputs ? input.data() : nullptr, target.data());
    for (std::size_t at = 0; at < bytes.size(); at += size_of(field.dtype)) {
      const double value = number_at(bytes.data() + at, field.dtype);
      if (value != std::trunc(value) || std::abs(value) > bound) return std::nullopt;
      found.insert(static_cast<std::int64_t>(value));
    }
  }
  if (found.empty()) return std::nullopt;
  return WholeNumbers{*found.begin(), *found.rbegin(), found.size()};
}

}  // namespace pmaptrain::input
