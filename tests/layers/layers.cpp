// Layers one by one: what they compute, and what they refuse.
#include <cmath>

#include "core/layers/conv.h"
#include "core/layers/conv_transpose.h"
#include "core/layers/parallel.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/layers/upsample.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const Field image{DType::f32, {4, 4, 2}};

model::Model f64_model(layers::LayerKind kind, Shape input) {
  return model::make_model(network({layer("layer", std::move(kind)), layer("flatten_0", layers::Flatten{})}),
                           {DType::f64, std::move(input)}, labels, DType::f64);
}

// One layer on one example.
Numbers of(layers::LayerKind kind, const Numbers& x, Shape input = {}) {
  if (input.empty()) input = {static_cast<std::int64_t>(x.size())};
  return forward(f64_model(std::move(kind), std::move(input)), x).at("y");
}

void check_close(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-15));
}

}  // namespace

TEST_CASE("activations are their formulas", "[layers]") {
  const Numbers x = {-800, -3, -0.5, 0, 0.5, 3, 800};
  const auto each = [&](double (*f)(double)) {
    Numbers y;
    for (const double value : x) y.push_back(f(value));
    return y;
  };
  check_close(of(layers::Sigmoid{}, x), each([](double v) { return 1 / (1 + std::exp(-v)); }));
  check_close(of(layers::Silu{}, x), each([](double v) { return v / (1 + std::exp(-v)); }));
  check_close(of(layers::Softplus{}, x), each([](double v) { return v > 100 ? v : std::log1p(std::exp(v)); }));
  check_close(of(layers::LeakyRelu{}, x), each([](double v) { return v >= 0 ? v : 0.01 * v; }));
  check_close(of(layers::LeakyRelu{0.2}, x), each([](double v) { return v >= 0 ? v : 0.2 * v; }));
  check_close(of(layers::Elu{}, x), each([](double v) { return v > 0 ? v : std::expm1(v); }));
  check_close(of(layers::Elu{2.0}, x), each([](double v) { return v > 0 ? v : 2 * std::expm1(v); }));
}

TEST_CASE("softmax divides along the last dimension, whatever the size of its values", "[layers]") {
  const double e = std::exp(1.0);
  check_close(of(layers::Softmax{}, {1, 0, 1000, 1001}, {2, 2}), {e / (1 + e), 1 / (1 + e), 1 / (1 + e), e / (1 + e)});
}

TEST_CASE("activations of large values have finite derivatives", "[layers]") {
  for (const layers::LayerKind& kind : std::vector<layers::LayerKind>{
           layers::Sigmoid{}, layers::Silu{}, layers::Softplus{}, layers::Elu{}, layers::Softmax{}}) {
    Network net = network({layer("layer", kind), layer("head", layers::Dense{2})});
    const Mesh one({{"devices", 1}});
    net.place(one, one.all());
    net.layers.insert(net.layers.begin(), layer("first", layers::Dense{2}));
    const model::Model model = model::make_model(net, {DType::f32, {2}}, labels);
    const Program program =
        step::train_program(model, net.step, optimizer_of(net, model), {1, 1}, all_ops(), step::Stage::grad);
    for (const double size : {1000.0, -1000.0}) {
      const Feed found = results_of(
          program,
          {{"first.kernel", {size, 0, 0, -size}}, {"head.kernel", {1, 0, 0, 1}}, {"inputs", {1, 1}}, {"mask", {1}}});
      for (const double slope : found.at("grad.first.kernel")) CHECK(std::isfinite(slope));
    }
  }
}

TEST_CASE("average pooling averages windows, and global average pooling channels", "[layers]") {
  Numbers x;
  for (int i = 0; i < 32; ++i) x.push_back(i);
  layers::AvgPool pool{{2, 2}, {2, 2}};
  check_close(of(pool, x, {4, 4, 2}), {5, 6, 9, 10, 21, 22, 25, 26});
  pool = {{3, 3}, {4, 4}, {layers::PaddingKind::explicit_, {{1, 0}, {1, 0}}}};
  check_close(of(pool, x, {4, 4, 2}), {(0 + 2 + 8 + 10) / 9.0, (1 + 3 + 9 + 11) / 9.0});
  pool.count_include_pad = false;
  check_close(of(pool, x, {4, 4, 2}), {5, 6});
  check_close(of(layers::GlobalAvgPool{}, x, {4, 4, 2}), {15, 16});
}

TEST_CASE("reshape keeps the values and may leave one size open", "[layers]") {
  const auto output = [](std::vector<std::int64_t> shape) {
    return f64_model(layers::Reshape{std::move(shape)}, {2, 6}).layers[0].output;
  };
  CHECK(output({3, 4}) == Shape{3, 4});
  CHECK(output({3, -1}) == Shape{3, 4});
  CHECK(output({-1}) == Shape{12});
  CHECK(of(layers::Reshape{{2, 2}}, {1, 2, 3, 4}) == Numbers{1, 2, 3, 4});
  const auto refused = [](std::vector<std::int64_t> shape) {
    return refusal(network({layer("reshape_0", layers::Reshape{std::move(shape)})}), image, labels);
  };
  CHECK(refused({3, 4}) ==
        "reshape_0 has the shape [3,4], which does not match the 32 elements of its input f32[4,4,2] | use sizes with "
        "the product 32");
  CHECK(refused({5, -1}) ==
        "reshape_0 has the shape [5,-1], which does not match the 32 elements of its input f32[4,4,2] | use sizes with "
        "the product 32");
  CHECK(refused({-1, -1}) == "reshape_0 has the shape [-1,-1], with more than one -1 | at most one size can be -1");
}

TEST_CASE("a convolution may be dilated and grouped", "[layers]") {
  layers::Conv conv{4, {3, 3}, {1, 1}, {layers::PaddingKind::same, {}}, true, {2, 1}, 2};
  const model::Model model = f64_model(conv, {5, 5, 2});
  CHECK(model.layers[0].output == Shape{5, 5, 4});
  CHECK(model.parameters[0].shape == Shape{3, 3, 1, 4});
  CHECK(model.parameters[0].initializer.scale == lecun_scale(9));
  conv.padding = {layers::PaddingKind::valid, {}};
  CHECK(f64_model(conv, {5, 5, 2}).layers[0].output == Shape{1, 3, 4});
  CHECK(refusal(network({layer("conv_0", conv)}), image, labels) ==
        "conv_0 has kernel_size [3,3] with kernel_dilation [2,1] with padding VALID, which does not fit into its input "
        "f32[4,4,2] | use a smaller kernel_size, padding: SAME, or fewer pooling layers before it");
  conv = {4, {1, 1}, {1, 1}, {}, true, {1, 1}, 4};
  CHECK(refusal(network({layer("conv_0", conv)}), image, labels) ==
        "conv_0 has feature_group_count 4, which does not divide the 2 channels of its input f32[4,4,2] | channels and "
        "features must be multiples of feature_group_count");
  conv.features = 5, conv.feature_group_count = 2;
  CHECK(refusal(network({layer("conv_0", conv)}), image, labels) ==
        "conv_0 has feature_group_count 2, which does not divide the 5 features | channels and features must be "
        "multiples of feature_group_count");
}

TEST_CASE("windows of one number slide over the positions of a sequence", "[layers]") {
  layers::Conv conv{4, {3}};
  conv.kernel_dilation = {2};
  conv.padding = {layers::PaddingKind::causal, {}};
  const model::Model same_length = f64_model(conv, {7, 6});
  CHECK(same_length.layers[0].output == Shape{7, 4});
  CHECK(same_length.parameters[0].shape == Shape{3, 6, 4});
  CHECK(same_length.parameters[0].initializer.scale == lecun_scale(18));
  CHECK(same_length.parameters[0].torch.axes == std::vector<std::int64_t>{2, 1, 0});
  conv.padding = {layers::PaddingKind::valid, {}};
  CHECK(f64_model(conv, {7, 6}).layers[0].output == Shape{3, 4});
  CHECK(f64_model(layers::MaxPool{{2}, {2}}, {7, 6}).layers[0].output == Shape{3, 6});
  CHECK(f64_model(layers::AvgPool{{3}, {2}, {layers::PaddingKind::same, {}}}, {7, 6}).layers[0].output == Shape{4, 6});
}

TEST_CASE("a transposed convolution is larger by its strides, with Flax's order of a kernel", "[layers]") {
  const auto made = [](std::vector<std::int64_t> size, std::vector<std::int64_t> strides, layers::PaddingKind padding) {
    layers::ConvTranspose layer{1, std::move(size), std::move(strides), {padding, {}}};
    layer.use_bias = false;
    return layer;
  };
  const auto spread = [](const layers::LayerKind& kind, Numbers kernel) {
    return forward(f64_model(kind, {2, 1}), {1, 2}, {{"layer.kernel", std::move(kernel)}}).at("y");
  };
  using layers::PaddingKind;
  CHECK(spread(made({2}, {2}, PaddingKind::same), {3, 5}) == Numbers{5, 3, 10, 6});
  CHECK(spread(made({3}, {1}, PaddingKind::same), {1, 10, 100}) == Numbers{210, 21});
  CHECK(spread(made({3}, {2}, PaddingKind::valid), {1, 10, 100}) == Numbers{100, 10, 201, 20, 2});
  CHECK(spread(made({1}, {3}, PaddingKind::same), {7}) == Numbers{7, 0, 0, 14, 0, 0});
  const layers::ConvTranspose image{4, {2, 3}, {2, 3}};
  const model::Model larger = f64_model(image, {5, 6, 2});
  CHECK(larger.layers[0].output == Shape{10, 18, 4});
  CHECK(larger.parameters[0].shape == Shape{2, 3, 2, 4});
  CHECK(larger.parameters[0].initializer.scale == lecun_scale(12));
  CHECK(refusal(network({layer("up", made({2}, {2}, PaddingKind::causal))}), {DType::f32, {4, 2}}, labels) ==
        "up has padding CAUSAL | a transposed convolution has padding: SAME or VALID");
}

TEST_CASE("images and sequences are enlarged by repeating elements, or linearly between their centres", "[layers]") {
  const auto linear = layers::UpsampleMethod::bilinear;
  check_close(of(layers::Upsample{2}, {1, 3}, {2, 1}), {1, 1, 3, 3});
  check_close(of(layers::Upsample{2, linear}, {1, 3}, {2, 1}), {1, 1.5, 2.5, 3});
  check_close(of(layers::Upsample{3, linear}, {0, 3}, {2, 1}), {0, 0, 1, 2, 3, 3});
  check_close(of(layers::Upsample{2, linear}, {1, 5}, {1, 2}), {1, 5, 1, 5});
  check_close(of(layers::Upsample{2}, {1, 2, 3, 4}, {2, 2, 1}), {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  CHECK(f64_model(layers::Upsample{3}, {4, 5, 2}).layers[0].output == Shape{12, 15, 2});
  CHECK(refusal(network({layer("up", layers::Upsample{2})}), {DType::f32, {4}}, labels) ==
        "up takes images [height,width,channels], sequences [positions,channels] or volumes "
        "[depth,height,width,channels]; its input is f32[4] | a vector becomes an image by reshape: [height, width, "
        "channels]");
}

TEST_CASE("the maximum over all positions is that of each channel", "[layers]") {
  check_close(of(layers::GlobalMaxPool{}, {1, -2, 3, -5}, {2, 2}), {3, -2});
  CHECK(f64_model(layers::GlobalMaxPool{}, {4, 5, 2}).layers[0].output == Shape{2});
  CHECK(
      refusal(network({layer("pool", layers::GlobalMaxPool{})}), {DType::f32, {4}}, labels)
          .starts_with("pool takes positions with channels, such as [height,width,channels]; its input is f32[4] | "));
}

TEST_CASE("a window has as many numbers as its input has dimensions before the channels", "[layers]") {
  const std::decay_t<decltype(image)> sequence{DType::f32, {7, 6}};
  layers::Conv conv{4, {3, 3}};
  CHECK(
      refusal(network({layer("conv_0", conv)}), sequence, labels) ==
      "conv_0 takes images [height,width,channels]; its input is f32[7,6] | a kernel_size of one number, such as [3], "
      "slides over the positions of a sequence");
  conv.padding = {layers::PaddingKind::causal, {}};
  CHECK(refusal(network({layer("conv_0", conv)}), image, labels) ==
        "conv_0 has padding CAUSAL, which is over positions, and its input has no order | padding: SAME; or a "
        "kernel_size "
        "of one number, for an input [positions,channels]");
  CHECK(refusal(network({layer("conv_0", layers::Conv{4, {3}})}), image, labels) ==
        "conv_0 takes sequences [positions,channels] with this kernel_size; its input is f32[4,4,2] | a kernel_size of "
        "two numbers slides over height and width");
  const layers::MaxPool pool{{2}, {2}, {layers::PaddingKind::causal, {}}};
  CHECK(refusal(network({layer("pool", pool)}), sequence, labels) ==
        "pool has padding CAUSAL, which is for conv over positions | padding: SAME or VALID");
  CHECK(refusal(network({layer("pool", layers::MaxPool{{9}, {1}})}), sequence, labels) ==
        "pool has window_shape [9] with padding VALID, which does not fit into its input f32[7,6] | use a smaller "
        "window_shape, padding: SAME, or fewer pooling layers before it");
}

TEST_CASE("a flattened sequence of windows has its channels first in PyTorch, and no other sequence", "[layers]") {
  const auto image_of_kernel = [](const std::vector<layers::Layer>& list) {
    return model::make_model(network(list), {DType::f32, {7, 6}}, labels).parameters.end()[-2].image;
  };
  const layers::Layer flatten = layer("flatten", layers::Flatten{}), dense = layer("dense", layers::Dense{3});
  const layers::Layer conv = layer("conv_0", layers::Conv{4, {3}}), relu = layer("relu", layers::Relu{});
  CHECK(image_of_kernel({conv, relu, flatten, dense}) == Shape{1, 7, 4});
  const layers::Layer both = layer("both", layers::Parallel{{{"skip", {}}, {"deep", {conv}}}, layers::Join::concat});
  CHECK(image_of_kernel({conv, both, flatten, dense}) == Shape{1, 7, 8});
  CHECK(image_of_kernel({both, flatten, dense}).empty());  // the input is no sequence of windows
  CHECK(image_of_kernel({flatten, dense}).empty());
  CHECK(image_of_kernel({conv, layer("wide", layers::Dense{5}), flatten, dense}).empty());
}

TEST_CASE("layers of images refuse other inputs", "[layers]") {
  CHECK(refusal(network({layer("pool", layers::AvgPool{{2, 2}, {2, 2}})}), {DType::f32, {4}}, labels) ==
        "pool takes images [height,width,channels]; its input is f32[4] | move flatten and dense layers after the "
        "pooling");
  CHECK(refusal(network({layer("pool", layers::GlobalAvgPool{})}), {DType::f32, {4}}, labels) ==
        "pool takes positions with channels, such as [height,width,channels]; its input is f32[4] | move flatten and "
        "dense layers after the pooling, or leave it out");
  CHECK(refusal(network({layer("softmax_0", layers::Softmax{})}), {DType::f32, {}}, labels) ==
        "softmax_0 takes features [N]; its input is f32[] | add flatten before it, which gives the shape [1]");
}
