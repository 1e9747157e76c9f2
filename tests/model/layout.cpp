// How other frameworks store parameters.
#include "core/model/layout.h"

#include "core/layers/conv.h"
#include "core/layers/conv_transpose.h"
#include "core/layers/dropout.h"
#include "core/layers/nested.h"
#include "core/layers/recurrent.h"
#include "core/layers/reshape.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using model::ParameterLayout;
using model::stored;

namespace {

const Field bytes_of_images{DType::u8, {4, 6, 2}};

// A convolution, then two dense layers behind an image of 2 x 3 x 5 that was flattened.
model::Model convolutional(layers::LayerKind flatten = layers::Flatten{}) {
  layers::Conv conv;
  conv.features = 5;
  conv.kernel_size = {3, 3};
  conv.strides = {2, 2};
  layers::Layers block;
  block.layers = {layer("conv_0", conv), layer("relu_0", layers::Relu{}), layer("flat", std::move(flatten)),
                  layer("dropout_0", layers::Dropout{0.5}), layer("dense_0", layers::Dense{7})};
  return model::make_model(network({layer("block", block), layer("head", layers::Dense{3})}), bytes_of_images, labels);
}

const model::Parameter& parameter(const model::Model& model, const std::string& name) {
  for (const model::Parameter& found : model.parameters) {
    if (found.name == name) return found;
  }
  throw std::logic_error("no parameter " + name);
}

Numbers counted_up(const Shape& shape) {
  Numbers values(static_cast<std::size_t>(numel(shape)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  return values;
}

// The element at each index of the file's array, of a parameter whose elements are 0, 1, 2, ...
Numbers in_file(const model::Parameter& parameter, ParameterLayout layout) {
  const std::vector<std::byte> ours = to_bytes(counted_up(parameter.shape), DType::f32);
  return to_numbers(model::to_stored(stored(parameter, layout), ours, sizeof(float)), DType::f32);
}

}  // namespace

TEST_CASE("PyTorch has kernels of transposed convolutions backwards, with the input channels first", "[model]") {
  const layers::ConvTranspose larger{2, {3}, {1}};
  const model::Model model =
      model::make_model(network({layer("up", larger), layer("flat", layers::Flatten{})}), {DType::f32, {4, 1}}, labels);
  const model::Parameter& kernel = parameter(model, "up.kernel");
  CHECK(stored(kernel, ParameterLayout::torch).shape == Shape{1, 2, 3});
  CHECK(in_file(kernel, ParameterLayout::torch) == Numbers{4, 2, 0, 5, 3, 1});
  const std::vector<std::byte> ours = to_bytes(counted_up(kernel.shape), DType::f32);
  const model::StoredParameter torch = stored(kernel, ParameterLayout::torch);
  CHECK(model::from_stored(torch, model::to_stored(torch, ours, 4), 4) == ours);
}

TEST_CASE("Flax has parameters as the program has them", "[model]") {
  const model::Model model = convolutional();
  for (const model::Parameter& parameter : model.parameters) {
    const model::StoredParameter flax = stored(parameter, ParameterLayout::flax);
    CHECK(flax.name == parameter.name);
    CHECK(flax.shape == parameter.shape);
    CHECK_FALSE(flax.is_reordered());
  }
}

TEST_CASE("PyTorch has kernels as weights, with the outputs first", "[model]") {
  const model::Model model = convolutional();
  const model::StoredParameter conv = stored(parameter(model, "block.conv_0.kernel"), ParameterLayout::torch);
  CHECK(conv.name == "block.conv_0.weight");
  CHECK(conv.shape == Shape{5, 2, 3, 3});
  const model::StoredParameter head = stored(parameter(model, "head.kernel"), ParameterLayout::torch);
  CHECK(head.name == "head.weight");
  CHECK(head.shape == Shape{3, 7});
  const model::StoredParameter bias = stored(parameter(model, "head.bias"), ParameterLayout::torch);
  CHECK(bias.name == "head.bias");
  CHECK_FALSE(bias.is_reordered());

  const Numbers kernel = in_file(parameter(model, "block.conv_0.kernel"), ParameterLayout::torch);
  for (std::size_t out = 0; out < 5; ++out) {
    for (std::size_t in = 0; in < 2; ++in) {
      for (std::size_t y = 0; y < 3; ++y) {
        for (std::size_t x = 0; x < 3; ++x) {
          CHECK(kernel[((out * 2 + in) * 3 + y) * 3 + x] == static_cast<double>(((y * 3 + x) * 2 + in) * 5 + out));
        }
      }
    }
  }
}

TEST_CASE("PyTorch has the gates of a recurrent layer in one array of each kind, with a second bias", "[model]") {
  const auto of = [](const auto& kind, const std::string& name) {
    const model::Model model = model::make_model(network({layer("rnn", kind)}), {DType::f32, {4, 6}}, labels);
    return parameter(model, "rnn." + name).torch;
  };
  using layers::Returned;
  const model::TorchParameter input = of(layers::Lstm{5, Returned::last}, "ig.kernel");
  CHECK(input.whole == "rnn.weight_ih_l0");
  CHECK((input.part == 2 && input.parts == 4 && input.added.empty()));
  const model::TorchParameter bias = of(layers::Lstm{5, Returned::last}, "ho.bias");
  CHECK((bias.whole == "rnn.bias_hh_l0" && bias.added == "rnn.bias_ih_l0" && bias.part == 3));
  const layers::Gru both{5, Returned::last, false, true};
  const model::TorchParameter state = of(both, "backward_rnn.hn.kernel");
  CHECK((state.whole == "rnn.weight_hh_l0_reverse" && state.part == 2 && state.parts == 3));
  const model::TorchParameter own = of(both, "forward_rnn.hn.bias");
  CHECK((own.whole == "rnn.bias_hh_l0" && own.added.empty() && own.part == 2));
  const model::Model model =
      model::make_model(network({layer("rnn", layers::Gru{5, Returned::last})}), {DType::f32, {4, 6}}, labels);
  CHECK(stored(parameter(model, "rnn.ir.kernel"), ParameterLayout::torch).name == "rnn.weight_ih_l0");
  CHECK(stored(parameter(model, "rnn.ir.kernel"), ParameterLayout::torch).shape == Shape{5, 6});
}

TEST_CASE("the inputs of a dense layer after a flattened image are in the order channels, height, width in PyTorch",
          "[model]") {
  const layers::LayerKind flatten =
      GENERATE(layers::LayerKind(layers::Flatten{}), layers::LayerKind(layers::Reshape{{-1}}));
  const model::Model model = convolutional(flatten);
  const model::Parameter& dense = parameter(model, "block.dense_0.kernel");
  CHECK(dense.image == Shape{2, 3, 5});
  CHECK(parameter(model, "head.kernel").image.empty());
  CHECK(stored(dense, ParameterLayout::torch).shape == Shape{7, 30});
  const Numbers kernel = in_file(dense, ParameterLayout::torch);
  for (std::size_t out = 0; out < 7; ++out) {
    for (std::size_t c = 0; c < 5; ++c) {
      for (std::size_t y = 0; y < 2; ++y) {
        for (std::size_t x = 0; x < 3; ++x) {
          CHECK(kernel[out * 30 + (c * 2 + y) * 3 + x] == static_cast<double>(((y * 3 + x) * 5 + c) * 7 + out));
        }
      }
    }
  }
}

TEST_CASE("the dimensions of a kernel and the order of an image are told apart", "[model]") {
  const model::Model model = convolutional();
  const model::Parameter& dense = parameter(model, "block.dense_0.kernel");
  CHECK(stored(dense, ParameterLayout::torch, false).shape == Shape{30, 7});
  CHECK(stored(dense, ParameterLayout::torch, false).is_reordered());
  CHECK(stored(dense, ParameterLayout::flax, true).shape == Shape{7, 30});
  CHECK(stored(dense, ParameterLayout::flax, true).view == dense.shape);
}

TEST_CASE("an image that is reshaped to another one is no flattened image", "[model]") {
  const model::Model model = model::make_model(
      network({layer("a", layers::Reshape{{12, 4}}), layer("b", layers::Flatten{}), layer("c", layers::Dense{3})}),
      bytes_of_images, labels);
  CHECK(model.parameters.front().image.empty());
}

TEST_CASE("the elements of a parameter come back from every layout, of any size", "[model]") {
  const model::Model model = convolutional();
  for (const model::Parameter& parameter : model.parameters) {
    for (const ParameterLayout layout : {ParameterLayout::flax, ParameterLayout::torch}) {
      for (const bool transposed : {false, true}) {
        for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
          const model::StoredParameter order = stored(parameter, layout, transposed);
          const std::vector<std::byte> ours = to_bytes(counted_up(parameter.shape), dtype);
          const std::vector<std::byte> there = model::to_stored(order, ours, size_of(dtype));
          CHECK((there == ours) == !order.is_reordered());
          CHECK(model::from_stored(order, there, size_of(dtype)) == ours);
        }
      }
    }
  }
}
