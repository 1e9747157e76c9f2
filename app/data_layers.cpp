#include "app/data_layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/table_source.h"

namespace pmaptrain::app {
namespace {

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

}  // namespace pmaptrain::app
