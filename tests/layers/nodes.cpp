// Nodes that consist of other layers: residual connections and repeated lists.
#include "core/layers/conv.h"
#include "core/layers/dropout.h"
#include "core/layers/nested.h"
#include "core/layers/reshape.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

using LayerList = std::vector<layers::Layer>;

const Field pair_of_numbers{DType::f64, {2}};
const Field picture{DType::f32, {8, 6, 3}};

model::Model model_of_nodes(LayerList layers, const Field& input = pair_of_numbers) {
  return model::make_model(network(std::move(layers)), input, labels, DType::f64);
}

layers::Conv convolution(std::int64_t features_out, std::int64_t stride = 1) {
  return {features_out, {3, 3}, {stride, stride}, {layers::PaddingKind::same, {}}, false};
}

std::vector<std::string> parameter_names(const model::Model& model) {
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) names.push_back(parameter.name);
  return names;
}

std::string refused_nodes(LayerList layers, const Field& input) {
  return refusal(network(std::move(layers)), input, labels);
}

}  // namespace

TEST_CASE("a residual layer adds its shortcut, or its input, to what its layers give", "[layers]") {
  const Feed kernel{{"residual_0.dense_0.kernel", {1, 2, 3, 4}}};
  const model::Model identity =
      model_of_nodes({layer("residual_0", layers::Residual{{layer("dense_0", layers::Dense{2})}, {}})});
  CHECK(forward(identity, {5, 7}, kernel).at("y") == Numbers{5 + 5 + 21, 7 + 10 + 28});

  const model::Model projected = model_of_nodes(
      {layer("residual_0", layers::Residual{{layer("dense_0", layers::Dense{2}), layer("relu_0", layers::Relu{})},
                                            {layer("dense_0", layers::Dense{2, false})}})});
  CHECK(parameter_names(projected) == std::vector<std::string>{"residual_0.dense_0.kernel", "residual_0.dense_0.bias",
                                                               "residual_0.shortcut.dense_0.kernel"});
  Feed both = kernel;
  both["residual_0.dense_0.bias"] = {-100, 0};
  both["residual_0.shortcut.dense_0.kernel"] = {0, 1, 1, 0};
  CHECK(forward(projected, {5, 7}, both).at("y") == Numbers{0 + 7, 38 + 5});
}

TEST_CASE("repeated layers have parameters of their own each time", "[layers]") {
  const model::Model model =
      model_of_nodes({layer("repeat_0", layers::Repeat{3, {layer("dense_0", layers::Dense{2, false})}}),
                      layer("head", layers::Dense{2})});
  CHECK(parameter_names(model) == std::vector<std::string>{"repeat_0.0.dense_0.kernel", "repeat_0.1.dense_0.kernel",
                                                           "repeat_0.2.dense_0.kernel", "head.kernel", "head.bias"});
  const Feed feed{{"repeat_0.0.dense_0.kernel", {2, 0, 0, 3}},
                  {"repeat_0.1.dense_0.kernel", {0, 1, 1, 0}},
                  {"repeat_0.2.dense_0.kernel", {1, 0, 0, 10}},
                  {"head.kernel", {1, 0, 0, 1}}};
  CHECK(forward(model, {5, 7}, feed).at("y") == Numbers{21, 100});
}

TEST_CASE("nodes are listed in the order of their results, a residual layer after its layers", "[layers]") {
  const LayerList block{layer("dense_0", layers::Dense{2}), layer("dropout_0", layers::Dropout{0.5})};
  const model::Model model =
      model_of_nodes({layer("dropout_0", layers::Dropout{0.5}),
                      layer("repeat_0", layers::Repeat{2, {layer("residual_0", layers::Residual{block, {}})}}),
                      layer("layers_0", layers::Layers{{layer("tanh_0", layers::Tanh{})}})});
  std::vector<std::string> names;
  for (const model::Node* node : model.nodes()) names.push_back(node->name);
  CHECK(names == std::vector<std::string>{"dropout_0", "repeat_0.0.residual_0.dense_0",
                                          "repeat_0.0.residual_0.dropout_0", "repeat_0.0.residual_0",
                                          "repeat_0.1.residual_0.dense_0", "repeat_0.1.residual_0.dropout_0",
                                          "repeat_0.1.residual_0", "layers_0.tanh_0"});
  CHECK(model.drawing_layers() ==
        std::vector<std::string>{"dropout_0", "repeat_0.0.residual_0.dropout_0", "repeat_0.1.residual_0.dropout_0"});
  // Each draws numbers of its own.
  Feed feed{{"row", {0}}, {"dropout_0", {1, 1}}};
  for (const char* const time : {"0", "1"}) {
    const std::string path = "repeat_0." + std::string(time) + ".residual_0.";
    feed[path + "dense_0.kernel"] = {1, 0, 0, 1};
    feed[path + "dropout_0"] = {2, time[0] == '0' ? 3.0 : 4.0};
  }
  CHECK(forward(model, {1, 1}, feed, true).at("y").size() == 2);
}

TEST_CASE("a residual layer refuses shapes that it cannot add, and says what makes them equal", "[layers]") {
  const LayerList halved{layer("conv_0", convolution(4, 2)), layer("relu_0", layers::Relu{})};
  CHECK(refused_nodes({layer("residual_0", layers::Residual{halved, {}})}, picture) ==
        "residual_0 adds what its layers give, f32[4,3,4], to its input, f32[8,6,3] | both have one shape: keep the "
        "shape in its layers, or project the input, for example by shortcut: [{conv: {features: 4, kernel_size: [1, "
        "1], strides: [2, 2]}}]");
  CHECK(refused_nodes({layer("residual_0", layers::Residual{{layer("conv_0", convolution(4))}, {}})}, picture) ==
        "residual_0 adds what its layers give, f32[8,6,4], to its input, f32[8,6,3] | both have one shape: keep the "
        "shape in its layers, or project the input, for example by shortcut: [{conv: {features: 4, kernel_size: [1, "
        "1]}}]");
  CHECK(refused_nodes({layer("residual_0", layers::Residual{{layer("dense_0", layers::Dense{5})}, {}})},
                      {DType::f32, {2}}) ==
        "residual_0 adds what its layers give, f32[5], to its input, f32[2] | both have one shape: keep the shape in "
        "its layers, or project the input, for example by shortcut: [{dense: 5}]");
  CHECK(refused_nodes({layer("residual_0", layers::Residual{{layer("flatten_0", layers::Flatten{})}, {}})}, picture) ==
        "residual_0 adds what its layers give, f32[144], to its input, f32[8,6,3] | both have one shape: keep the "
        "shape in its layers, or project the input by shortcut");
  CHECK(refused_nodes({layer("block", layers::Residual{halved, {layer("conv_0", convolution(4))}})}, picture) ==
        "block adds what its layers give, f32[4,3,4], to what its shortcut gives, f32[8,6,4] | both have one shape: "
        "change the last layer of one of them");
}

TEST_CASE("layers inside of others are refused by their paths", "[layers]") {
  const layers::Layer wrong = layer("conv_0", convolution(4));
  CHECK(refused_nodes({layer("repeat_0", layers::Repeat{2, {layer("residual_0", layers::Residual{{wrong}, {}})}})},
                      {DType::f32, {2}}) ==
        "repeat_0.0.residual_0.conv_0 takes images [height,width,channels]; its input is f32[2] | move flatten and "
        "dense layers after the convolutions, or use dense here");
  CHECK(refused_nodes({layer("residual_0", layers::Residual{{layer("relu_0", layers::Relu{})}, {wrong}})},
                      {DType::f32, {2}}) ==
        "residual_0.shortcut.conv_0 takes images [height,width,channels]; its input is f32[2] | move flatten and dense "
        "layers after the convolutions, or use dense here");
  CHECK(
      refused_nodes({layer("repeat_0", layers::Repeat{2, {layer("dense_0", layers::Dense{5})}})}, {DType::f32, {2}}) ==
      "repeat_0 repeats layers that make f32[5] of its input f32[2] | layers of repeat keep the shape, because each "
      "time takes what the time before gives; move the layer that changes it before repeat or after it");
  CHECK(refused_nodes({layer("residual_0", layers::Residual{{layer("shortcut", layers::Relu{})}, {}})},
                      {DType::f32, {2}}) ==
        "a layer of residual_0 is named 'shortcut', as the other list of a residual layer is | give it another name: "
        "parameters below residual_0.shortcut are those of that list");
}
