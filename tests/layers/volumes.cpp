// Windows over depth, height and width.
#include <algorithm>
#include <cmath>

#include "core/layers/conv.h"
#include "core/layers/conv_transpose.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/layers/upsample.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Shape volume{4, 5, 6, 2};

model::Model model_of_volumes(const layers::LayerKind& kind) {
  return model::make_model(network({layer("layer", kind), layer("flatten_0", layers::Flatten{})}), {DType::f64, volume},
                           labels, DType::f64);
}

Numbers irregular(std::int64_t count) {
  Numbers numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(std::sin(1.3 * static_cast<double>(i * i % 97)));
  return numbers;
}

struct Pooled {
  std::vector<std::int64_t> window, strides;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
};

// f(the elements of a window that are in the volume, the size of the window) for each window and channel.
template <class F>
Numbers by_windows(const Pooled& pooled, const Numbers& x, F&& f) {
  const auto out = [&](std::size_t d) {
    return (volume[d] + pooled.padding[d].first + pooled.padding[d].second - pooled.window[d]) / pooled.strides[d] + 1;
  };
  Numbers found;
  const std::int64_t per_slice = out(1) * out(2) * volume[3], per_row = out(2) * volume[3];
  for (std::int64_t i = 0; i < out(0) * per_slice; ++i) {
    const std::int64_t at[] = {i / per_slice, i / per_row % out(1), i / volume[3] % out(2)}, c = i % volume[3];
    Numbers inside;
    for (std::int64_t k = 0; k < pooled.window[0] * pooled.window[1] * pooled.window[2]; ++k) {
      const std::int64_t of[] = {k / pooled.window[2] / pooled.window[1], k / pooled.window[2] % pooled.window[1],
                                 k % pooled.window[2]};
      std::int64_t index = 0;
      bool is_inside = true;
      for (std::size_t d = 0; d < 3; ++d) {
        const std::int64_t place = at[d] * pooled.strides[d] - pooled.padding[d].first + of[d];
        is_inside = is_inside && 0 <= place && place < volume[d];
        index = index * volume[d] + place;
      }
      if (is_inside) inside.push_back(x[static_cast<std::size_t>(index * volume[3] + c)]);
    }
    found.push_back(f(inside, pooled.window[0] * pooled.window[1] * pooled.window[2]));
  }
  return found;
}

double sum_of(const Numbers& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

void check_near_numbers(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-13));
}

}  // namespace

TEST_CASE("pools of volumes are over all elements of each window", "[layers]") {
  const Numbers x = irregular(numel(volume));
  const layers::Padding uneven{layers::PaddingKind::explicit_, {{1, 0}, {0, 1}, {2, 1}}};
  const Pooled plain{{2, 3, 2}, {2, 1, 3}, {{0, 0}, {0, 0}, {0, 0}}}, padded{{2, 2, 3}, {1, 2, 2}, uneven.amounts};
  const auto pooled = [&](const layers::LayerKind& kind) { return forward(model_of_volumes(kind), x).at("y"); };
  const auto most = [](const Numbers& inside, std::int64_t) { return *std::max_element(inside.begin(), inside.end()); };
  const auto mean = [](const Numbers& inside, std::int64_t size) { return sum_of(inside) / static_cast<double>(size); };
  const auto mean_inside = [](const Numbers& inside, std::int64_t) {
    return sum_of(inside) / static_cast<double>(inside.size());
  };
  CHECK(pooled(layers::MaxPool{plain.window, plain.strides}) == by_windows(plain, x, most));
  CHECK(pooled(layers::MaxPool{padded.window, padded.strides, uneven}) == by_windows(padded, x, most));
  check_near_numbers(pooled(layers::AvgPool{plain.window, plain.strides}), by_windows(plain, x, mean));
  check_near_numbers(pooled(layers::AvgPool{padded.window, padded.strides, uneven}), by_windows(padded, x, mean));
  check_near_numbers(pooled(layers::AvgPool{padded.window, padded.strides, uneven, false}),
                     by_windows(padded, x, mean_inside));
}

TEST_CASE("convolutions of volumes have kernels with a depth, and PyTorch's have the channels first", "[layers]") {
  layers::Conv conv{6, {3, 2, 3}, {1, 2, 1}};
  conv.kernel_dilation = {1, 1, 1};
  const model::Model model = model_of_volumes(conv);
  CHECK(model.layers[0].output == Shape{4, 3, 6, 6});
  CHECK(model.parameters[0].shape == Shape{3, 2, 3, 2, 6});
  CHECK(model.parameters[0].torch.axes == Shape{4, 3, 0, 1, 2});
  CHECK(model.parameters[0].initializer.scale == lecun_scale(36));
  layers::ConvTranspose larger{3, {2, 1, 2}, {2, 1, 3}};
  larger.kernel_dilation = {1, 1, 1};
  const model::Model transposed = model_of_volumes(larger);
  CHECK(transposed.layers[0].output == Shape{8, 5, 18, 3});
  CHECK(transposed.parameters[0].shape == Shape{2, 1, 2, 2, 3});
  CHECK(transposed.parameters[0].torch.axes == Shape{3, 4, 0, 1, 2});
  CHECK(transposed.parameters[0].torch.reversed == 3);
  CHECK(model_of_volumes(layers::Upsample{2}).layers[0].output == Shape{8, 10, 12, 2});
  CHECK(model_of_volumes(layers::GlobalMaxPool{}).layers[0].output == Shape{2});
  CHECK(model_of_volumes(layers::Flatten{}).layers[0].image == Shape{20, 6, 2});
}

TEST_CASE("windows of another number of dimensions than a volume's are refused with what to write", "[layers]") {
  const auto refused = [](const layers::LayerKind& kind, const Shape& input) {
    return refusal(network({layer("layer", kind)}), {DType::f32, input}, labels);
  };
  CHECK(refused(layers::Conv{4, {3, 3}}, volume) ==
        "layer takes images [height,width,channels]; its input is f32[4,5,6,2] | a kernel_size of three numbers slides "
        "over depth, height and width");
  layers::Conv conv{4, {3, 3, 3}, {1, 1, 1}};
  conv.kernel_dilation = {1, 1, 1};
  CHECK(refused(conv, {5, 6, 2}) ==
        "layer takes volumes [depth,height,width,channels] with this kernel_size; its input is f32[5,6,2] | a "
        "kernel_size of two numbers slides over height and width; reshape: [5,6,2,1] makes it a volume of one channel");
  CHECK(refused(layers::MaxPool{{2, 2, 2}, {2, 2, 2}}, {6, 2}) ==
        "layer takes volumes [depth,height,width,channels] with this window_shape; its input is f32[6,2] | a "
        "window_shape of one number, such as [3], slides over the positions of a sequence");
  conv.padding = {layers::PaddingKind::causal, {}};
  CHECK(refused(conv, volume).starts_with("layer has padding CAUSAL, which is over positions"));
}
