#include "core/data/arrays/array_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/data/parallel.h"

namespace pmaptrain::data {
namespace {

void note(std::vector<std::string>& notes, std::string text) {
  if (std::find(notes.begin(), notes.end(), text) == notes.end()) notes.push_back(std::move(text));
}

// The shape of one example, of at least rank 1.
Shape example_shape(const Array& array) {
  Shape shape(array.shape.begin() + 1, array.shape.end());
  if (shape.empty()) shape.push_back(1);
  return shape;
}

// The same of inputs.
Shape input_shape(const Array& array, Channels channels, bool tokens) {
  Shape shape = example_shape(array);
  if (channels == Channels::first && shape.size() > 2) {
    fail_data(fmt::format("{} has the shape {}, and channels: first is for arrays of three dimensions (N, A, B)",
                          array.name, to_string(array.shape)),
              "in NumPy, x.transpose(0, 2, 3, 1) moves the channels of pictures to the end");
  }
  if (shape.size() != 2) return shape;
  if (channels == Channels::first) return {shape[1], shape[0]};
  if (channels == Channels::none && !tokens) shape.push_back(1);
  return shape;
}

// Element [a, b] of `from` becomes [b, a] of `to`; `shape` is that of `to`.
void transpose(const std::byte* from, const Shape& shape, std::size_t size, std::byte* to) {
  const auto rows = static_cast<std::size_t>(shape[0]), columns = static_cast<std::size_t>(shape[1]);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c, to += size) std::memcpy(to, from + (c * rows + r) * size, size);
  }
}

void check_not_empty(const Array& array) {
  if (array.shape.empty()) fail_data(fmt::format("{} is a single number, expected one row per example", array.name));
  if (array.shape[0] == 0)
    fail_data(fmt::format("{} has no examples: its shape is {}", array.name, to_string(array.shape)));
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) {
    fail_data(fmt::format("{} is empty: a dimension of its shape {} is 0", array.name, to_string(array.shape)));
  }
}

void check_fits_float(const Array& array) {
  const std::optional<Found> found = find_beyond_float(array);
  if (!found) return;
  fail_data(fmt::format("{} has {} at {}, which overflows float32", array.name, exact(found->value),
                        pmaptrain::to_string(found->index)),
            "the largest float32 is about 3.4e38: scale the values before saving them");
}

// Refuses the first number of `values` that is NaN or infinite; they are the elements of `array` from `first` on.
void check_finite(const Array& array, std::int64_t first, std::span<const float> values) {
  const std::optional<std::size_t> found = find_nonfinite(values);
  if (!found) return;
  const Shape index = index_of(first + static_cast<std::int64_t>(*found), array.shape);
  const float value = values[*found];
  fail_data(fmt::format("example {} of {} has {} at {}", index.front(), array.name,
                        std::isnan(value) ? "NaN"
                        : value > 0       ? "infinity"
                                          : "-infinity",
                        pmaptrain::to_string(index)),
            "remove the example, or replace the value");
}

// All of it, in parts that stay in a cache: read again with each batch, it would be found in the middle of a run.
void check_finite(const Array& array) {
  if (!is_floating(array.element)) return;
  constexpr std::int64_t part = std::int64_t{1} << 16;
  const std::int64_t count = numel(array.shape);
  for_each_item((count + part - 1) / part, [&](std::int64_t i) {
    std::vector<float> values(static_cast<std::size_t>(std::min(part, count - i * part)));
    read_floats(array, i * part, values);
    check_finite(array, i * part, values);
  });
}

// Element `position` of an array of integers, which must fit 32 bits; `what` names it in the error.
std::int32_t integer_of(const Array& array, std::int64_t position, std::string_view what) {
  const std::optional<std::int64_t> value = read_integer(array, position);
  if (value && *value == static_cast<std::int32_t>(*value)) return static_cast<std::int32_t>(*value);
  const Shape index = index_of(position, array.shape);
  fail_data(fmt::format("the {} of example {} in {} is {}{}, which does not fit 32 bits", what, index.front(),
                        array.name, value ? std::to_string(*value) : "2^63 or more",
                        index.size() > 1 ? fmt::format(" at {}", pmaptrain::to_string(index)) : ""));
}

// Inputs without targets.
class InputArray : public Dataset {
 public:
  InputArray(Array inputs, std::vector<std::string>& notes, Place place, ArrayMeaning meaning)
      : inputs_(std::move(inputs)), place_(std::move(place)) {
    check_not_empty(inputs_);
    input_.origin = inputs_.name;
    const bool tokens = meaning.tokens && !is_floating(inputs_.element);
    input_.shape = input_shape(inputs_, meaning.channels, tokens);
    is_transposed_ = meaning.channels == Channels::first && input_.shape.size() == 2;
    input_.dtype = inputs_.element == Element::u8 ? DType::u8 : tokens ? DType::i32 : DType::f32;
    if (input_.dtype == DType::f32 && !is_floating(inputs_.element)) input_.stored = name_of(inputs_.element);
    if (input_.dtype == DType::f32 && inputs_.element != Element::f32) {
      note(notes, fmt::format("inputs are {} and become f32", name_of(inputs_.element)));
    }
    if (tokens) {
      for (std::int64_t i = 0; i < numel(inputs_.shape); ++i) integer_of(inputs_, i, "token");
    } else {
      check_fits_float(inputs_);
      check_finite(inputs_);
    }
    input_bytes_ = input_.bytes();
    inputs_.bytes.check_intact();
  }

  std::int64_t size() const override { return inputs_.shape[0]; }
  Field input() const override { return input_; }
  Field target() const override { return no_target(); }

  void read(std::int64_t index, std::byte* input, std::byte*) const override {
    if (input == nullptr) return;
    if (!is_transposed_) return read_as_stored(index, input);
    std::vector<std::byte> stored(input_bytes_);
    read_as_stored(index, stored.data());
    transpose(stored.data(), input_.shape, size_of(input_.dtype), input);
  }

  bool rounds_inputs() const override { return input_.dtype == DType::f32 && !fits_float(inputs_.element); }
  void read_exact_input(std::int64_t index, double* input) const override {
    const auto count = static_cast<std::size_t>(numel(input_.shape));
    const std::int64_t first = index * static_cast<std::int64_t>(count);
    if (!is_transposed_) return read_finite(first, {input, count});
    std::vector<double> stored(count);
    read_finite(first, stored);
    transpose(reinterpret_cast<const std::byte*>(stored.data()), input_.shape, sizeof(double),
              reinterpret_cast<std::byte*>(input));
  }

  void check_intact() const override {
    at_place(place_, [&] { inputs_.bytes.check_intact(); });
  }
  void check_unchanged() const override {
    at_place(place_, [&] { inputs_.bytes.check_unchanged(); });
  }

  const Array& inputs() const { return inputs_; }

 private:
  void read_finite(std::int64_t first, std::span<double> values) const {
    read_doubles(inputs_, first, values);
    const auto bad = std::find_if(values.begin(), values.end(), [](double value) { return !std::isfinite(value); });
    if (bad == values.end()) return;
    std::vector<float> rounded(values.begin(), values.end());
    at_place(place_, [&] { check_finite(inputs_, first, rounded); });
  }

  void read_as_stored(std::int64_t index, std::byte* input) const {
    if (input_.dtype == DType::u8) {
      std::memcpy(input, inputs_.bytes.data() + static_cast<std::size_t>(index) * input_bytes_, input_bytes_);
    } else if (input_.dtype == DType::i32) {
      const std::int64_t count = numel(input_.shape);
      for (std::int64_t i = 0; i < count; ++i, input += sizeof(std::int32_t)) {
        const std::int32_t token = at_place(place_, [&] { return integer_of(inputs_, index * count + i, "token"); });
        std::memcpy(input, &token, sizeof token);
      }
    } else {
      const std::size_t count = input_bytes_ / sizeof(float);
      const std::int64_t first = index * static_cast<std::int64_t>(count);
      const std::span<float> values{reinterpret_cast<float*>(input), count};
      read_floats(inputs_, first, values);
      at_place(place_, [&] { check_finite(inputs_, first, values); });
    }
  }

  Array inputs_;
  Place place_;
  Field input_;
  std::size_t input_bytes_ = 0;
  bool is_transposed_ = false;
};

class ArrayDataset : public InputArray {
 public:
  ArrayDataset(Array inputs, const Array& targets, std::vector<std::string>& notes, const Place& place,
               ArrayMeaning meaning)
      : InputArray(std::move(inputs), notes, place, meaning), place_(place) {
    check_not_empty(targets);
    if (this->inputs().shape[0] != targets.shape[0]) {
      fail_data(fmt::format("{} holds {} examples, but {} holds {} targets", this->inputs().name,
                            this->inputs().shape[0], targets.name, targets.shape[0]),
                "inputs and targets must be of the same split, in the same order");
    }
    read_targets(targets, notes, meaning);
    target_bytes_ = target_.bytes();
    targets.bytes.check_intact();
  }

  Field target() const override { return target_; }

  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    InputArray::read(index, input, target);
    if (map_) return read_map(index, target);
    const auto* const from =
        reinterpret_cast<const std::byte*>(target_.dtype == DType::i32 ? static_cast<const void*>(labels_.data())
                                                                       : static_cast<const void*>(values_.data()));
    std::memcpy(target, from + static_cast<std::size_t>(index) * target_bytes_, target_bytes_);
  }

  bool rounds_targets() const override { return !exact_.empty(); }
  void read_exact_target(std::int64_t index, double* target) const override {
    const auto count = static_cast<std::size_t>(numel(target_.shape));
    std::copy_n(exact_.data() + static_cast<std::size_t>(index) * count, count, target);
  }

  std::optional<std::pair<std::int64_t, std::int64_t>> label_range() const override { return range_; }

  void check_intact() const override {
    InputArray::check_intact();
    if (map_) at_place(place_, [&] { map_->bytes.check_intact(); });
  }
  void check_unchanged() const override {
    InputArray::check_unchanged();
    if (map_) at_place(place_, [&] { map_->bytes.check_unchanged(); });
  }

 private:
  // Targets are checked at opening. But for label maps they are small, so they are converted too.
  void read_targets(const Array& targets, std::vector<std::string>& notes, ArrayMeaning meaning) {
    Shape shape = example_shape(targets);
    const bool one_label = shape == Shape{1};
    const bool of_tokens = meaning.tokens && !is_floating(this->inputs().element) && shape == input().shape;
    const bool is_map = meaning.label_maps && shape.size() > 1;
    if (!meaning.numeric_targets && !is_floating(targets.element) && (one_label || of_tokens || is_map)) {
      if (one_label || (is_map && shape.back() == 1)) shape.pop_back();
      target_ = {DType::i32, shape, targets.name};
      if (is_map) map_ = targets;
      read_labels(targets);
      return;
    }
    if (targets.element != Element::f32) {
      note(notes, fmt::format("targets are {} and become f32", name_of(targets.element)));
    }
    check_fits_float(targets);
    target_ = {DType::f32, shape, targets.name};
    if (!is_floating(targets.element)) target_.stored = name_of(targets.element);
    values_.resize(static_cast<std::size_t>(numel(targets.shape)));
    read_floats(targets, 0, values_);
    check_finite(targets, 0, values_);
    if (fits_float(targets.element)) return;
    exact_.resize(values_.size());
    read_doubles(targets, 0, exact_);
  }

  void read_labels(const Array& targets) {
    const std::int64_t count = numel(targets.shape);
    if (!map_) labels_.resize(static_cast<std::size_t>(count));
    std::pair<std::int64_t, std::int64_t> range{std::numeric_limits<std::int32_t>::max(),
                                                std::numeric_limits<std::int32_t>::min()};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t label = integer_of(targets, i, "label");
      range = {std::min<std::int64_t>(range.first, label), std::max<std::int64_t>(range.second, label)};
      if (!map_) labels_[static_cast<std::size_t>(i)] = label;
    }
    range_ = range;
  }

  void read_map(std::int64_t index, std::byte* target) const {
    const std::int64_t count = numel(target_.shape);
    for (std::int64_t i = 0; i < count; ++i, target += sizeof(std::int32_t)) {
      const std::int32_t label = at_place(place_, [&] { return integer_of(*map_, index * count + i, "label"); });
      std::memcpy(target, &label, sizeof label);
    }
  }

  Field target_;
  std::size_t target_bytes_ = 0;
  Place place_;
  std::optional<Array> map_;  // of labels, which are converted when they are read
  std::vector<std::int32_t> labels_;
  std::vector<float> values_;
  std::vector<double> exact_;  // the same as the file has them, where that is more
  std::optional<std::pair<std::int64_t, std::int64_t>> range_;
};

Array to_array(const std::vector<std::vector<double>>& rows, std::string name) {
  if (rows.empty()) fail_data(fmt::format("{} has no rows, expected one an example", name));
  const std::size_t width = rows[0].size();
  if (width == 0) fail_data(fmt::format("row 0 of {} is empty, expected numbers", name));
  const Memory memory = allocate(rows.size() * width * sizeof(double), name);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != width) {
      fail_data(fmt::format("row {} of {} has length {}, but row 0 has length {}", i, name, rows[i].size(), width),
                "all rows must be of the same length");
    }
    std::memcpy(memory.view.data() + i * width * sizeof(double), rows[i].data(), width * sizeof(double));
  }
  return {std::move(name),
          Element::f64,
          false,
          {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(width)},
          Bytes(memory.owner, memory.view)};
}

}  // namespace

std::optional<Channels> channels_of(Element element, const Shape& shape, bool tokens) {
  if (shape.size() != 3) return std::nullopt;
  return element == Element::u8 && !tokens ? Channels::none : Channels::last;
}

std::string describe(Channels channels, Element element, const Shape& shape) {
  const bool are_pictures = channels == Channels::none;
  return fmt::format("npz: channels is {} for {}[N,{},{}]: {}", declare::word_of(channels), name_of(element), shape[1],
                     shape[2],
                     are_pictures ? fmt::format("examples are pictures [{},{},1]; channels: last would make them "
                                                "sequences with {} channels",
                                                shape[1], shape[2], shape[2])
                                  : fmt::format("examples are sequences [{},{}] with {} channels; channels: none would "
                                                "make them pictures [{},{},1]",
                                                shape[1], shape[2], shape[2], shape[1], shape[2])) +
         (!are_pictures && may_be_channels_first({shape[1], shape[2]})
              ? fmt::format(", and first sequences [{},{}] with {} channels", shape[2], shape[1], shape[1])
              : "");
}

bool may_be_channels_first(const Shape& sequence) { return sequence.size() == 2 && sequence[0] < sequence[1]; }

std::shared_ptr<const Dataset> make_dataset(Array inputs, const Array& targets, std::vector<std::string>& notes,
                                            const Place& place, ArrayMeaning meaning) {
  return std::make_shared<ArrayDataset>(std::move(inputs), targets, notes, place, meaning);
}

Shape shape_of_inputs(const Array& inputs, const ArrayMeaning& meaning) {
  check_not_empty(inputs);
  return input_shape(inputs, meaning.channels, meaning.tokens && !is_floating(inputs.element));
}

std::shared_ptr<const Dataset> make_inputs(Array inputs, std::vector<std::string>& notes, const Place& place,
                                           ArrayMeaning meaning) {
  return std::make_shared<InputArray>(std::move(inputs), notes, place, meaning);
}

std::shared_ptr<const Dataset> make_dataset(const std::vector<std::vector<double>>& inputs,
                                            const std::vector<std::vector<double>>& targets) {
  std::vector<std::string> notes;  // that both become f32, which is not said of numbers in a config
  Array first = to_array(inputs, "values.inputs");
  return std::make_shared<ArrayDataset>(std::move(first), to_array(targets, "values.targets"), notes, Place{},
                                        ArrayMeaning{});
}

}  // namespace pmaptrain::data
