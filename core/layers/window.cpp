#include "core/layers/window.h"

#include <algorithm>

namespace pmaptrain::layers {

Window place_window(const Padding& padding, const Shape& image, const std::vector<std::int64_t>& size,
                    const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilation) {
  Window window;
  for (std::size_t i = 0; i < 2; ++i) {
    std::pair<std::int64_t, std::int64_t> amount{0, 0};
    const std::int64_t extent = (size[i] - 1) * dilation[i] + 1;
    if (padding.kind == PaddingKind::explicit_) amount = padding.amounts[i];
    if (padding.kind == PaddingKind::same) {
      const std::int64_t outputs = (image[i] + strides[i] - 1) / strides[i];
      const std::int64_t total = std::max<std::int64_t>((outputs - 1) * strides[i] + extent - image[i], 0);
      amount = {total / 2, total - total / 2};
    }
    const std::int64_t room = image[i] + amount.first + amount.second - extent;
    window.padding.push_back(amount);
    window.output.push_back(room < 0 ? 0 : room / strides[i] + 1);
  }
  return window;
}

std::string describe(const Padding& padding) {
  if (padding.kind == PaddingKind::same) return "SAME";
  if (padding.kind == PaddingKind::valid) return "VALID";
  std::string text = "[";
  for (const auto& [low, high] : padding.amounts) {
    if (text.size() > 1) text += ",";
    text += to_string(Shape{low, high});
  }
  return text + "]";
}

}  // namespace pmaptrain::layers
