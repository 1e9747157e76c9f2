#include "core/ops/conv/window.h"

#include <fmt/format.h>

#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

// A bound far above any image size, and far below the overflow of sums of sizes.
constexpr std::int64_t largest = std::int64_t{1} << 31;

std::string_view dimension_name(std::size_t d) { return d == 0 ? "depth" : d == 1 ? "height" : "width"; }

// The sum of floor((a·i + b) / m) over 0 <= i < n, for non-negative numbers, in as many rounds as Euclid's algorithm
// needs for a and m. It counts the lattice points under a line, alternately by columns and by rows.
double sum_of_quotients(std::int64_t n, std::int64_t m, std::int64_t a, std::int64_t b) {
  double sum = 0;
  while (n > 0) {
    const auto count = static_cast<double>(n);
    sum += count * (count - 1) / 2 * static_cast<double>(a / m) + count * static_cast<double>(b / m);
    const std::int64_t top = a % m * n + b % m;
    n = top / m;
    b = top % m;
    m = std::exchange(a, m) % m;
  }
  return sum;
}

// The number of pairs of a position and a window element that are before index `end` of the padded image.
double pairs_before(const Window& window, std::int64_t end) {
  // The number of window elements before `end` at the window's first position, and at its last position.
  const auto elements = [&](std::int64_t distance) {
    return distance <= 0 ? 0 : std::min(window.window, (distance - 1) / window.dilation + 1);
  };
  const std::int64_t at_first = elements(end), at_last = elements(end - (window.out - 1) * window.stride);
  // Each other element is before `end` at ceil((end - element * dilation) / stride) positions. Count from the last
  // element.
  const std::int64_t distance = end - (at_first - 1) * window.dilation;
  return static_cast<double>(at_last) * static_cast<double>(window.out) +
         sum_of_quotients(at_first - at_last, window.stride, window.dilation, distance + window.stride - 1);
}

}  // namespace

double Window::taps() const { return pairs_before(*this, low + in) - pairs_before(*this, low); }

std::string pairs_text(std::span<const std::pair<std::int64_t, std::int64_t>> pairs) {
  std::string text = "[";
  for (const auto& [low, high] : pairs) text += fmt::format("{}({},{})", text.size() > 1 ? "," : "", low, high);
  return text + "]";
}

Windows slide(std::string_view op, const Shape& image, std::span<const std::int64_t> size,
              std::span<const std::int64_t> strides, std::span<const std::pair<std::int64_t, std::int64_t>> padding,
              std::span<const std::int64_t> dilation) {
  const bool is_volume = image.size() == 5;
  if (image.size() != 4 && !is_volume) {
    throw TypeError(6, fmt::format("{} of shape {}", op, to_string(image)),
                    "an image has four dimensions: examples, height, width, channels; a volume has a depth before its "
                    "height");
  }
  const std::size_t dimensions = image.size() - 2;
  const std::string each = is_volume ? "for depth, for height and for width" : "for height and one for width";
  if (size.size() != dimensions || strides.size() != dimensions || padding.size() != dimensions) {
    throw TypeError(6, fmt::format("{} with {} strides and {} paddings", op, strides.size(), padding.size()),
                    "give one of each " + each);
  }
  if (!dilation.empty() && dilation.size() != dimensions) {
    throw TypeError(6, fmt::format("{} with {} dilations", op, dilation.size()), "give one " + each);
  }
  Windows windows;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const std::size_t d = windows.size() - dimensions + i;
    const auto [low, high] = padding[i];
    if (strides[i] < 1 || strides[i] > largest) {
      throw TypeError(6, fmt::format("{} with a stride of {} in {}", op, strides[i], dimension_name(d)),
                      "a stride is at least 1");
    }
    if (low < 0 || high < 0 || low > largest || high > largest) {
      throw TypeError(6, fmt::format("{} with padding {}", op, pairs_text(padding)),
                      "padding is a number of rows before and after, each 0 or more");
    }
    const std::int64_t in = image[i + 1];
    if (in < 0 || in > most_elements) {
      throw TypeError(6, fmt::format("{} of shape {}", op, to_string(image)),
                      "a size is not negative, and an image has at most 10^12 elements");
    }
    const std::int64_t apart = dilation.empty() ? 1 : dilation[i];
    if (apart < 1 || apart > largest) {
      throw TypeError(6, fmt::format("{} with a dilation of {} in {}", op, apart, dimension_name(d)),
                      "a dilation is at least 1");
    }
    const bool fits = size[i] >= 1 && (size[i] - 1) <= (in + low + high - 1) / apart && in + low + high > 0;
    if (!fits) {
      const std::string dilated = apart == 1 ? "" : fmt::format(" dilated by {}", apart);
      throw TypeError(6,
                      fmt::format("{} with a window of {}{} over {} + {} + {} elements of {}", op, size[i], dilated,
                                  low, in, high, dimension_name(d)),
                      size[i] < 1 ? "a window has at least one element" : "the window must fit into the padded image");
    }
    windows[d] = {in, size[i], strides[i], low, high, 0, apart};
    windows[d].out = (in + low + high - windows[d].extent()) / strides[i] + 1;
  }
  return windows;
}

void expect_floating(std::string_view op, std::span<const Type> operands, std::span<const std::string_view> names) {
  if (operands.size() != names.size()) {
    std::string list;
    for (const std::string_view name : names) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
    throw TypeError(6, fmt::format("{} of {} operands", op, operands.size()),
                    fmt::format("{} takes {}: {}", op, names.size(), list));
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!is_floating(operands[i].dtype) || operands[i].dtype != operands[0].dtype) {
      throw TypeError(6,
                      fmt::format("{}: {} is {}{}", op, names[i], to_string(operands[i].dtype),
                                  i == 0 ? "" : fmt::format(" and {} is {}", names[0], to_string(operands[0].dtype))),
                      fmt::format("{} takes bf16, f32 or f64, the same for all operands", op));
    }
  }
}

}  // namespace pmaptrain::ops
