#include "core/layers/window.h"

#include <algorithm>
#include <utility>

#include "core/ops/reshape/reshape.h"

namespace pmaptrain::layers {

Window place_window(const Padding& padding, const Shape& image, const std::vector<std::int64_t>& size,
                    const std::vector<std::int64_t>& strides, const std::vector<std::int64_t>& dilation) {
  Window window;
  for (std::size_t i = 0; i < size.size(); ++i) {
    std::pair<std::int64_t, std::int64_t> amount{0, 0};
    const std::int64_t extent = (size[i] - 1) * dilation[i] + 1;
    if (padding.kind == PaddingKind::explicit_) amount = padding.amounts[i];
    if (padding.kind == PaddingKind::same) {
      const std::int64_t outputs = (image[i] + strides[i] - 1) / strides[i];
      const std::int64_t total = std::max<std::int64_t>((outputs - 1) * strides[i] + extent - image[i], 0);
      amount = {total / 2, total - total / 2};
    }
    if (padding.kind == PaddingKind::causal) amount = {extent - 1, 0};
    const std::int64_t room = image[i] + amount.first + amount.second - extent;
    window.padding.push_back(amount);
    window.output.push_back(room < 0 ? 0 : room / strides[i] + 1);
  }
  return window;
}

bool set_lengths(const LayerInput& in, const Window& window, const Padding& padding, std::int64_t extent,
                 std::int64_t stride, Node& layer) {
  if (!in.lengths) return true;
  if (padding.kind == PaddingKind::same && stride > 1) {
    in.refuse("has padding SAME with strides " + std::to_string(stride) +
                  ", which pads a sequence by its length, and the data have lengths",
              "padding: VALID, or a number of positions [[before, after]]; conv has CAUSAL, too");
    return false;
  }
  if (window.output.size() > 1) {
    in.refuse("has windows over more than positions, and the data have lengths",
              "a kernel_size or window_shape of one number slides over the positions of sequences [T, C]");
    return false;
  }
  const auto [before, after] = window.padding.front();
  layer.lengths = in.lengths->behind_windows(before + after, extent, stride);
  return true;
}

bool Window::fits() const {
  return std::all_of(output.begin(), output.end(), [](std::int64_t size) { return size > 0; });
}

std::string describe(const Padding& padding) {
  if (padding.kind == PaddingKind::same) return "SAME";
  if (padding.kind == PaddingKind::valid) return "VALID";
  if (padding.kind == PaddingKind::causal) return "CAUSAL";
  std::string text = "[";
  for (const auto& [low, high] : padding.amounts) {
    if (text.size() > 1) text += ",";
    text += to_string(Shape{low, high});
  }
  return text + "]";
}

std::vector<std::int64_t> as_image(std::vector<std::int64_t> sizes) {
  if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
  return sizes;
}

Window as_image(Window window) {
  window.output = as_image(std::move(window.output));
  if (window.padding.size() == 1) window.padding.insert(window.padding.begin(), {0, 0});
  return window;
}

Shape out_and_in_first(std::size_t dimensions, bool is_transposed) {
  const auto in = static_cast<std::int64_t>(dimensions), out = in + 1;
  Shape order = is_transposed ? Shape{in, out} : Shape{out, in};
  for (std::int64_t d = 0; d < in; ++d) order.push_back(d);
  return order;
}

Shape image_of_windows(const Shape& output) {
  if (output.size() >= 3) return {};
  return {1, output.front(), output.back()};
}

Value with_height(Builder& b, Value x, std::size_t place) {
  Shape shape = b.type(x).shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(place), 1);
  return b.emit(ops::Reshape{std::move(shape)}, {x});
}

Value without_height(Builder& b, Value x) {
  Shape shape = b.type(x).shape;
  shape.erase(shape.begin() + 1);
  return b.emit(ops::Reshape{std::move(shape)}, {x});
}

bool takes_windows(const LayerInput& in, const std::string& key, const std::vector<std::int64_t>& size,
                   std::string help) {
  if (in.shape.size() == size.size() + 1) return true;
  if (in.shape.size() == 3) {
    help = "a " + key + " of two numbers slides over height and width";
    Shape volume = in.shape;
    volume.push_back(1);
    if (size.size() == 3) help += "; reshape: " + to_string(volume) + " makes it a volume of one channel";
  }
  if (in.shape.size() == 4) help = "a " + key + " of three numbers slides over depth, height and width";
  if (in.shape.size() == 2) {
    const std::string_view channels = in.around.channels;
    help = "a " + key + " of one number, such as [3], slides over the positions of a sequence";
    if (!channels.empty()) {
      const std::string pictures =
          "data.source.npz.channels: none takes arrays (N, height, width) for pictures "
          "[height,width,1]; it is " +
          std::string(channels);
      help = channels == "last" ? pictures + "; " + help : pictures;
    }
  }
  const std::string with = " with this " + key;
  in.refuse((size.size() == 2   ? "takes images [height,width,channels]"
             : size.size() == 1 ? "takes sequences [positions,channels]" + with
                                : "takes volumes [depth,height,width,channels]" + with) +
                "; its input is " + in.shown(),
            std::move(help));
  return false;
}

}  // namespace pmaptrain::layers
