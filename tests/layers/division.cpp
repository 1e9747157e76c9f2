// Which layers of a model devices divide, and what each device then has of their parameters.
#include "core/layers/division.h"

#include <map>
#include <string>
#include <vector>

#include "core/layers/attention.h"
#include "core/layers/conv.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/norms.h"
#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "core/layers/swiglu.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

namespace pmaptrain::testing::division_of_layers {
namespace {

using layers::Division;

Network on_model_axis(std::vector<layers::Layer> list, int devices) {
  Network net = network(std::move(list));
  net.place(Mesh({{"data", 1}, {"model", devices}}), AxisSet::of(0));
  net.tensor_axes = AxisSet::of(1);
  return net;
}

// "dense_0 columns, relu_0 keeps, dense_1 rows": of each layer that computes something.
std::string divisions(const model::Model& model) {
  const std::map<Division, std::string> words{{Division::whole, "whole"},
                                              {Division::columns, "columns"},
                                              {Division::rows, "rows"},
                                              {Division::keeps, "keeps"},
                                              {Division::inside, "inside"}};
  std::string text;
  for (const model::Node* node : model.nodes()) {
    text += (text.empty() ? "" : ", ") + node->name + " " + words.at(node->division);
  }
  return text;
}

// "kernel [8,6{model}]": of each parameter, the axes that divide it; "along {model}" where devices read all of it.
std::string layouts(const model::Model& model, const Mesh& mesh) {
  std::string text;
  for (const model::Parameter& parameter : model.parameters) {
    text += (text.empty() ? "" : ", ") + parameter.name + " " + to_string(parameter.layout(), mesh);
    if (!parameter.read_along.empty()) text += " along";
  }
  return text;
}

layers::Layer relu(const std::string& name) { return layer(name, layers::Relu{}); }
layers::Layer dense(const std::string& name, std::int64_t features) { return layer(name, layers::Dense{features}); }

}  // namespace

TEST_CASE("two layers are a pair where only layers of single features are between them", "[layers]") {
  const Network net = on_model_axis(
      {dense("a", 8), relu("b"), dense("c", 6), relu("d"), layer("e", layers::LayerNorm{}), dense("f", 3)}, 2);
  const model::Model model = model::make_model(net, {DType::f32, {4}}, labels);
  CHECK(divisions(model) == "a columns, b keeps, c rows, d whole, e whole, f whole");
  CHECK(layouts(model, net.mesh) ==
        "a.kernel [4,8{model}], a.bias [8{model}], c.kernel [8{model},6], c.bias [6], e.scale [6], e.bias [6], "
        "f.kernel [6,3], f.bias [3]");
  CHECK(model.layers.back().whole_because == "no layer to pair it with");
  CHECK(model.output_axes.empty());
}

TEST_CASE("a layer with tensor: none stays whole, and the lists inside of it", "[layers]") {
  std::vector<layers::Layer> block{dense("a", 8), relu("b"), dense("c", 4)};
  layers::Layer kept = layer("kept", layers::Residual{block, {}}),
                divided = layer("divided", layers::Residual{block, {}});
  kept.tensor = layers::TensorPolicy::none;
  const Network net = on_model_axis({kept, divided, dense("head", 3)}, 4);
  const model::Model model = model::make_model(net, {DType::f32, {4}}, labels);
  CHECK(divisions(model) ==
        "kept.a whole, kept.b whole, kept.c whole, kept whole, divided.a columns, divided.b keeps, divided.c rows, "
        "divided whole, head whole");
  CHECK(model.nodes().front()->whole_because == "tensor: none");
}

TEST_CASE("attention is divided by heads, with fewer heads of keys too", "[layers]") {
  layers::Attention attention;
  attention.heads = 4;
  attention.kv_heads = 2;
  attention.qk_norm = true;
  attention.use_bias = false;
  const auto layouts_on = [&](int devices) {
    const Network net =
        on_model_axis({layer("a", attention), layer("m", layers::GlobalAvgPool{}), dense("h", 3)}, devices);
    return layouts(model::make_model(net, {DType::f32, {5, 8}}, labels), net.mesh);
  };
  const std::string rest = ", h.kernel [8,3], h.bias [3]";
  CHECK(layouts_on(2) ==
        "a.query.kernel [8,4{model},2], a.key.kernel [8,2{model},2], a.value.kernel [8,2{model},2], a.out.kernel "
        "[4{model},2,8], a.query_ln.scale [2] along, a.key_ln.scale [2] along" +
            rest);
  CHECK(layouts_on(4) ==
        "a.query.kernel [8,4{model},2], a.key.kernel [8,2,2] along, a.value.kernel [8,2,2] along, a.out.kernel "
        "[4{model},2,8], a.query_ln.scale [2] along, a.key_ln.scale [2] along" +
            rest);
}

TEST_CASE("a table of 50,257 words is divided over 2, 4 and 8 devices, and its output with it", "[layers]") {
  for (const auto& [devices, rows] : std::vector<std::pair<int, std::int64_t>>{{2, 25129}, {4, 12565}, {8, 6283}}) {
    const Network net =
        on_model_axis({layer("tokens", layers::Embedding{50257, 2}), layer("out", layers::Attend{"tokens"})}, devices);
    const model::Model model = model::make_model(net, {DType::i32, {3}}, {DType::i32, {3}});
    CHECK(divisions(model) == "tokens inside, out columns");
    CHECK(local_shape(model.parameters.front().layout(), net.mesh) == Shape{rows, 2});
    CHECK(model.output_axes == net.tensor_axes);
    CHECK_FALSE(model.layers.back().gathers_output);
  }
}

TEST_CASE("an output is whole where the loss takes no part of the classes", "[layers]") {
  Network net = on_model_axis({dense("a", 8), relu("b"), dense("c", 6), dense("head", 300)}, 2);
  CHECK(model::make_model(net, {DType::f32, {4}}, labels).output_axes == net.tensor_axes);
  // Of class probabilities.
  const model::Model model = model::make_model(net, {DType::f32, {4}}, {DType::f32, {300}});
  CHECK(model.output_axes.empty());
  CHECK(model.layers.back().whole_because == "no layer to pair it with");
}

TEST_CASE("an axis of one device divides nothing", "[layers]") {
  const Network net = on_model_axis({dense("a", 8), relu("b"), dense("c", 3)}, 1);
  CHECK(divisions(model::make_model(net, {DType::f32, {4}}, labels)) == "a whole, b whole, c whole");
}

}  // namespace pmaptrain::testing::division_of_layers
