// Branches that are joined, and positions that are added and taken: what they compute, and what they refuse.
#include <cmath>

#include "core/layers/conv.h"
#include "core/layers/embedding.h"
#include "core/layers/nested.h"
#include "core/layers/parallel.h"
#include "core/layers/pooling.h"
#include "core/layers/positions.h"
#include "core/layers/reshape.h"
#include "core/model/layout.h"
#include "core/setup/initialize.h"
#include "tests/catch.h"
#include "tests/model/finite_differences.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using layers::Join;

namespace {

using LayerList = std::vector<layers::Layer>;

layers::Parallel branches_of(Join join, std::vector<std::pair<std::string, LayerList>> branches) {
  layers::Parallel made;
  made.join = join;
  for (auto& [name, list] : branches) made.branches.push_back({name, std::move(list)});
  return made;
}

const LayerList dense_of_two{layer("dense_0", layers::Dense{2, false})}, no_layers;

model::Model branch_model(layers::LayerKind kind, Shape input) {
  return model::make_model(network({layer("one", std::move(kind)), layer("flatten_0", layers::Flatten{})}),
                           {DType::f64, std::move(input)}, labels, DType::f64);
}

std::string refused_branches(LayerList layers, Shape input) {
  return refusal(network(std::move(layers)), {DType::f32, std::move(input)}, labels);
}

}  // namespace

TEST_CASE("branches begin at one value, and are joined by concat, add or multiply", "[layers]") {
  const Feed kernel{{"one.deep.dense_0.kernel", {2, 0, 0, 3}}};
  const auto joined = [&](Join join) {
    return forward(branch_model(branches_of(join, {{"skip", no_layers}, {"deep", dense_of_two}, {"again", no_layers}}),
                                {2}),
                   {5, 7}, kernel)
        .at("y");
  };
  CHECK(joined(Join::concat) == Numbers{5, 7, 10, 21, 5, 7});
  CHECK(joined(Join::add) == Numbers{20, 35});
  CHECK(joined(Join::multiply) == Numbers{250, 1029});
  CHECK(forward(branch_model(branches_of(Join::concat, {{"0", no_layers}}), {2}), {5, 7}).at("y") == Numbers{5, 7});
}

TEST_CASE("branches are concatenated along the channels of each position", "[layers]") {
  const model::Model model = branch_model(branches_of(Join::concat, {{"a", no_layers}, {"b", dense_of_two}}), {2, 2});
  CHECK(model.layers[0].output == Shape{2, 4});
  CHECK(forward(model, {1, 2, 3, 4}, {{"one.b.dense_0.kernel", {10, 0, 0, 10}}}).at("y") ==
        Numbers{1, 2, 10, 20, 3, 4, 30, 40});
}

TEST_CASE("a value of each channel is added to all positions, or multiplies them", "[layers]") {
  const LayerList mean{layer("global_avg_pool_0", layers::GlobalAvgPool{})};
  const Numbers x{1, 2, 3, 4, 5, 6, 7, 8};
  for (const bool first : {false, true}) {
    const auto joined = [&](Join join) {
      return forward(branch_model(branches_of(join, {{"x", first ? mean : no_layers}, {"y", first ? no_layers : mean}}),
                                  {2, 2, 2}),
                     x)
          .at("y");
    };
    CHECK(joined(Join::add) == Numbers{5, 7, 7, 9, 9, 11, 11, 13});
    CHECK(joined(Join::multiply) == Numbers{4, 10, 12, 20, 20, 30, 28, 40});
  }
}

TEST_CASE("parameters of branches have the names of these in their paths, at any depth", "[layers]") {
  const layers::Parallel inner = branches_of(Join::add, {{"0", dense_of_two}, {"1", no_layers}});
  const model::Model model = branch_model(
      branches_of(Join::concat,
                  {{"skip", dense_of_two}, {"deep", {layer("parallel_0", inner), layer("tail", layers::Dense{3})}}}),
      {2});
  std::vector<std::string> names;
  for (const model::Parameter& parameter : model.parameters) names.push_back(parameter.name);
  CHECK(names == std::vector<std::string>{"one.skip.dense_0.kernel", "one.deep.parallel_0.0.dense_0.kernel",
                                          "one.deep.tail.kernel", "one.deep.tail.bias"});
  CHECK(model.layers[0].output == Shape{5});
}

TEST_CASE("a residual layer is the sum of two branches", "[layers]") {
  const Feed of_residual{{"one.dense_0.kernel", {1, 2, 3, 4}}}, of_parallel{{"one.a.dense_0.kernel", {1, 2, 3, 4}}};
  const Numbers x{5, 7};
  CHECK(forward(branch_model(layers::Residual{dense_of_two, {}}, {2}), x, of_residual).at("y") ==
        forward(branch_model(branches_of(Join::add, {{"a", dense_of_two}, {"b", no_layers}}), {2}), x, of_parallel)
            .at("y"));
}

TEST_CASE("a class token is a position before all others, and take gives one of them", "[layers]") {
  const Numbers x{1, 2, 3, 4};
  const model::Model model = branch_model(layers::ClassToken{}, {2, 2});
  CHECK(model.layers[0].output == Shape{3, 2});
  CHECK(model.parameters.front().initializer.scale == 0);
  CHECK(forward(model, {1, 2, 3, 4, 5, 6, 7, 8}, {{"one.token", {8, 9}}}).at("y") ==
        Numbers{8, 9, 1, 2, 3, 4, 8, 9, 5, 6, 7, 8});
  const auto taken = [&](declare::Position position, Shape input) {
    layers::Take take;
    take.position = position;
    return forward(branch_model(take, std::move(input)), {1, 2, 3, 4, 5, 6, 7, 8}).at("y");
  };
  CHECK(taken({0, false}, {4, 2}) == Numbers{1, 2});
  CHECK(taken({2, false}, {4, 2}) == Numbers{5, 6});
  CHECK(taken({0, true}, {4, 2}) == Numbers{7, 8});
  CHECK(taken({1, false}, {2, 2, 2}) == Numbers{5, 6, 7, 8});
  CHECK(taken({0, true}, {2, 2}) == Numbers{3, 4, 7, 8});
}

TEST_CASE("the gradients of branches and of positions match finite differences of the loss", "[layers]") {
  Network net = classifier(Mesh({{"devices", 2}}));
  const LayerList gate{layer("global_avg_pool_0", layers::GlobalAvgPool{}), layer("dense_0", layers::Dense{2}),
                       layer("sigmoid_0", layers::Sigmoid{})};
  const LayerList deep{layer("dense_0", layers::Dense{3}), layer("tanh_0", layers::Tanh{})};
  layers::Take last;
  last.position.is_last = true;
  net.layers = {
      layer("gated", branches_of(Join::multiply, {{"gate", gate}, {"skip", no_layers}})),
      layer("joined", branches_of(Join::concat, {{"0", no_layers}, {"1", deep}})),
      layer("class_token_0", layers::ClassToken{}),
      layer("mixed", layers::Transpose{{1, 0}}),
      layer("dense_0", layers::Dense{4}),
      layer("summed",
            branches_of(Join::add, {{"0", no_layers}, {"1", {layer("dense_0", layers::Dense{4})}}, {"2", no_layers}})),
      layer("take_0", last),
      layer("head", layers::Dense{3})};
  const model::Model model = model::make_model(net, {DType::f64, {3, 2}}, labels, DType::f64);
  const Program program = step::train_program(model, net.step, optimizer_of(net, model, {2, 2}), {2, 2}, all_ops());
  Feed feed{{"targets", {0, 2, 1, 1}}, {"mask", {1, 1, 1, 0}}};
  add_numbers(feed, step::step_numbers(model, net.step, optimizer_of(net, model)));
  for (int i = 0; i < 24; ++i) feed["inputs"].push_back(std::sin(1.7 * i));
  for (const model::Parameter& parameter : model.parameters) {
    feed[parameter.name] = to_numbers(setup::draw(parameter, 5, DType::f64), DType::f64);
    for (double& value : feed[parameter.name]) value += 0.1;
  }
  const Feed result = results_of(program, feed);
  check_gradients(program, model, feed, result);
}

TEST_CASE("a flattened image that branches leave as it is still is one for PyTorch", "[layers]") {
  const auto image_behind = [](Join join) {
    const Network net = network({layer("flatten_0", layers::Flatten{}),
                                 layer("one", branches_of(join, {{"a", no_layers}, {"b", no_layers}})),
                                 layer("head", layers::Dense{2})});
    return model::make_model(net, {DType::f32, {4, 3, 2}}, labels).parameters.front().image;
  };
  CHECK(image_behind(Join::add) == Shape{4, 3, 2});
  CHECK(image_behind(Join::concat).empty());
}

TEST_CASE("branches whose outputs do not fit are refused with their shapes", "[layers]") {
  const layers::Conv halved{4, {3, 3}, {2, 2}, {layers::PaddingKind::same, {}}, false};
  const layers::Layer conv = layer("conv_0", halved);
  CHECK(
      refused_branches({layer("one", branches_of(Join::concat, {{"skip", no_layers}, {"deep", {conv}}}))}, {8, 6, 3}) ==
      "one has branches that cannot be joined along the last dimension: skip: f32[8,6,3], deep: f32[4,3,4] | all "
      "other dimensions are equal: in images keep height and width, by padding: SAME without strides, or use the "
      "same strides in each branch");
  CHECK(refused_branches(
            {layer("one", branches_of(Join::add, {{"0", no_layers}, {"1", {layer("dense_0", layers::Dense{4})}}}))},
            {8, 6, 3}) ==
        "one has branches that cannot be added: 0: f32[8,6,3], 1: f32[8,6,4] | all have one shape, or are one value "
        "for each channel, [C] beside [..., C]: end the branches with layers of as many features, or write join: "
        "concat");
  CHECK(refused_branches({layer("one", branches_of(Join::multiply, {{"0", no_layers}, {"1", {conv}}}))}, {8, 6, 3}) ==
        "one has branches that cannot be multiplied: 0: f32[8,6,3], 1: f32[4,3,4] | all have one shape, or are one "
        "value for each channel, [C] beside [..., C]: end the branches with layers of as many features");
  CHECK(refused_branches({layer("one", branches_of(Join::concat, {{"0", no_layers}, {"1", no_layers}}))}, {}) ==
        "one has branches that cannot be joined along the last dimension: 0: f32[], 1: f32[] | all other dimensions "
        "are equal: in images keep height and width, by padding: SAME without strides, or use the same strides in "
        "each branch");
  const layers::Layer table = layer("embedding_0", layers::Embedding{9, 4});
  CHECK(refusal(network({layer("one", branches_of(Join::add, {{"a", {table}}, {"b", no_layers}}))}), {DType::i32, {4}},
                labels) ==
        "one joins numbers, and its branch b gives tokens | begin each branch with embedding, or put parallel behind "
        "one");
  CHECK(refused_branches({layer("one", branches_of(Join::add, {{"a", no_layers}, {"b", {conv}}}))}, {4}) ==
        "one.b.conv_0 takes images [height,width,channels]; its input is f32[4] | move flatten and dense layers after "
        "the convolutions, or use dense here");
}

TEST_CASE("positions are refused where there are no_layers", "[layers]") {
  layers::Take take;
  take.position.index = 4;
  CHECK(refused_branches({layer("take_0", take)}, {4, 2}) ==
        "take_0 takes position 4; its input f32[4,2] has 4 positions | they are counted from 0: the last is 3, which "
        "take: last names for any length");
  CHECK(refused_branches({layer("take_0", take)}, {4}) ==
        "take_0 takes a position of sequences [T, ...]; its input is f32[4] | leave it out, or put it before the "
        "layers that join the positions");
  CHECK(refused_branches({layer("class_token_0", layers::ClassToken{})}, {4}) ==
        "class_token_0 takes sequences [T, C]; its input is f32[4] | add reshape: [T, C] before it");
  CHECK(refused_branches({layer("class_token_0", layers::ClassToken{})}, {4, 3, 2}) ==
        "class_token_0 takes sequences [T, C]; its input is f32[4,3,2] | add reshape: [12, 2] before it, which makes a "
        "sequence of the positions");
}
