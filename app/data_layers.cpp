#include "app/data_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "app/table_source.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/statistics.h"
#include "core/input/inspect.h"
#include "core/run/records/lines.h"

namespace pmaptrain::app {
namespace {

// Tokens are below this, and a sequence has at least so many.
constexpr std::int64_t most_tokens = 65536, least_length = 8;
// Numbers of more kinds, or of fewer examples each, are rather counts or prices.
constexpr std::size_t most_kinds = 20, least_examples_of_kind = 5;

std::string convolution(std::int64_t features) {
  return fmt::format("    - conv: {{features: {}, kernel_size: [3, 3]}}", features);
}

// Numbers for each pixel of the inputs.
bool are_maps(const Shape& input, const Shape& target) {
  return input.size() == 3 && (target.size() == 2 || target.size() == 3) && target[0] == input[0] &&
         target[1] == input[1];
}

std::string reshaped(const Shape& target) {
  std::string sizes;
  for (const std::int64_t size : target) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  return commented("    - reshape: [" + sizes + "]", "the shape of the targets");
}

bool may_be_tokens(const data::Field& field, const std::optional<input::WholeNumbers>& numbers) {
  return !field.stored.empty() && field.shape.size() == 1 && field.shape.front() >= least_length && numbers &&
         numbers->least >= 0 && numbers->most < most_tokens;
}

std::string hint_of_tokens(const data::Dataset& train) {
  const data::Field input = train.input(), target = train.target();
  if (input.stored.empty()) return "";
  const std::optional<input::WholeNumbers> inputs = input::whole_numbers(train, input::NumbersOf::inputs);
  if (!may_be_tokens(input, inputs)) return "";
  std::string hint =
      fmt::format("; if the inputs are tokens: begin the layers with embedding: {{num_embeddings: {}, features: 64}}",
                  inputs->most + 1);
  const std::optional<input::WholeNumbers> labels = input::whole_numbers(train, input::NumbersOf::targets);
  if (target.shape == input.shape && may_be_tokens(target, labels)) {
    hint += fmt::format(
        ", end them with dense: {}, and take loss: softmax_cross_entropy with metrics: [accuracy] for "
        "a class at each position, without normalize, normalize_targets and the metric of checkpoint "
        "and early_stopping",
        labels->most + 1);
  } else {
    hint += " and flatten, without normalize";
  }
  return hint;
}

std::string hint_of_channels(const Shape& input) {
  if (!data::may_be_channels_first(input)) return "";
  return fmt::format("; if an example is {} channels of {} steps, (N, C, T): data.source.npz.channels: first", input[0],
                     input[1]);
}

std::string hint_of_whole_numbers(const data::Dataset& train) {
  const data::Field target = train.target();
  if (target.shape.size() > 1) {
    return target.stored.empty() ? ""
                                 : "; for classes of pixels end the layers with an output for each class, without "
                                   "reshape, and take loss: softmax_cross_entropy without normalize_targets";
  }
  if (numel(target.shape) != 1) return "";
  const std::optional<input::WholeNumbers> numbers = input::whole_numbers(train, input::NumbersOf::targets);
  const bool are_few = numbers && numbers->distinct >= 2 && numbers->distinct <= most_kinds &&
                       numbers->distinct * least_examples_of_kind <= static_cast<std::size_t>(train.size());
  if (!are_few) return "";
  const bool are_integers = !target.stored.empty() || target.dtype == DType::i32;
  const std::string from_0 = numbers->least == 0 ? "y" : "y - y.min()";
  return fmt::format("; {} distinct whole numbers: for classes store integers from 0 ({})", numbers->distinct,
                     are_integers          ? from_0
                     : numbers->least == 0 ? "y.astype(int)"
                                           : "(" + from_0 + ").astype(int)");
}

}  // namespace

std::string layers_for(const Shape& input, const Shape& target, std::int64_t outputs, const std::string& what) {
  std::string out;
  if (are_maps(input, target)) {
    for (int i = 0; i < 2; ++i) out += convolution(32) + "\n    - relu\n";
    out += commented(convolution(target.size() == 3 ? target[2] : 1), what);
    return target.size() == 3 ? out : out + reshaped(target);
  }
  Shape shape = input;
  // Convolutions as long as the image is large enough for another one.
  if (input.size() == 3 && std::min(input[0], input[1]) >= 8) {
    std::int64_t features = 32;
    for (int block = 0; block < 5 && std::min(shape[0], shape[1]) >= 8; ++block) {
      shape = {shape[0] / 2, shape[1] / 2, features};
      out += convolution(features) + "\n    - relu\n";
      out += commented("    - max_pool: {window_shape: [2, 2], strides: [2, 2]}",
                       fmt::format("-> ({}, {}, {})", shape[0], shape[1], shape[2]));
      features = std::min<std::int64_t>(2 * features, 128);
    }
    out += "    - flatten\n";
  } else {
    if (input.size() > 1) out += "    - flatten\n";
    for (int i = 0; i < 2; ++i) out += "    - dense: 64\n    - relu\n";
  }
  out += commented(fmt::format("    - dense: {}", outputs), what);
  return target.size() > 1 ? out + reshaped(target) : out;
}

std::string sequence_layers(std::int64_t outputs, const std::string& what) {
  std::string out;
  for (int i = 0; i < 2; ++i) out += "    - conv: {features: 64, kernel_size: [5]}\n    - relu\n";
  out += commented("    - global_avg_pool", "over the positions of each sequence");
  return out + commented(fmt::format("    - dense: {}", outputs), what);
}

namespace {

// Convolutions with norms of each example, which no number of devices changes.
std::string convolved(const std::string& indent, int times, std::int64_t features) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += fmt::format("{}- conv: {{features: {}, kernel_size: [3, 3], use_bias: false}}\n", indent, features);
    out += indent + "- group_norm: {num_groups: 4}\n" + indent + "- relu\n";
  }
  return out;
}

}  // namespace

std::string unet_layers(const Shape& input, std::int64_t outputs, const std::string& what) {
  const std::string first(4, ' '), second(12, ' '), third(20, ' ');
  const auto level = [&](const std::string& indent, std::int64_t factor) {
    std::string out = commented(
        indent + "- parallel:",
        fmt::format("the picture as it is, and what {}x{} pixels make of it", input[0] / factor, input[1] / factor));
    out += indent + "    join: concat\n" + indent + "    branches:\n" + indent + "      skip: []\n";
    out += indent + "      below:\n";
    return out + indent + "        - max_pool: {window_shape: [2, 2], strides: [2, 2]}\n";
  };
  std::string out = convolved(first, 1, 16) + level(first, 2) + convolved(second, 1, 32) + level(second, 4);
  out += convolved(third, 2, 64) + third + "- upsample: 2\n";
  out += convolved(second, 1, 32) + second + "- upsample: 2\n";
  out += convolved(first, 1, 16);
  return out + commented(fmt::format("    - conv: {{features: {}, kernel_size: [1, 1]}}", outputs), what);
}

std::optional<std::int64_t> classes_beside_255(const data::Dataset& train) {
  constexpr std::int32_t unlabelled = 255;
  const auto range = train.label_range();
  if (!range || range->second != unlabelled) return std::nullopt;
  std::map<std::int32_t, std::int64_t> counts = data::count_labels(train);
  counts.erase(unlabelled);
  if (counts.empty() || counts.rbegin()->first >= most_classes_of_pixels) return std::nullopt;
  return std::int64_t{counts.rbegin()->first} + 1;
}

std::string choices_of_channels(data::Channels channels, const Shape& input, bool is_choice) {
  if (!is_choice) return fmt::format("sequences {} with {} channels", to_string(input), input[1]);
  if (channels == data::Channels::none)
    return fmt::format("pictures {}; last: sequences with {} channels", to_string(input), input[1]);
  const std::string first =
      data::may_be_channels_first(input) ? fmt::format("; first: [{},{}] with {}", input[1], input[0], input[0]) : "";
  return fmt::format("sequences {} with {} channels; none: pictures{}", to_string(input), input[1], first);
}

std::string hints_on_arrays(const data::Dataset& train, bool is_regression, bool are_inputs_open) {
  const std::string of_numbers = is_regression ? hint_of_whole_numbers(train) : "";
  if (!are_inputs_open) return of_numbers;
  return hint_of_channels(train.input().shape) + of_numbers + hint_of_tokens(train);
}

std::string hint_on_counts(const data::Dataset& train) {
  const std::optional<double> mean = input::mean_of_counts(train);
  if (!mean) return "";
  return fmt::format(
      "; as counts: loss: poisson without normalize_targets, and outputs that begin at the logarithm of the mean: "
      "dense: {{features: 1, bias_init: {{constant: {}}}}}",
      run::compact(std::log(*mean)));
}

}  // namespace pmaptrain::app
