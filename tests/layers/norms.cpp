// Norms, and layers that act on the last of several dimensions: what they compute, and what they refuse.
#include "core/layers/norms.h"

#include <cmath>

#include "core/layers/pooling.h"
#include "core/layers/reshape.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

model::Model norm_model(layers::LayerKind kind, Shape input) {
  return model::make_model(network({layer("layer", std::move(kind)), layer("flatten_0", layers::Flatten{})}),
                           {DType::f64, std::move(input)}, labels, DType::f64);
}

Numbers norm_of(layers::LayerKind kind, Shape input, const Numbers& x, const Feed& feed = {}) {
  return forward(norm_model(std::move(kind), std::move(input)), x, feed).at("y");
}

void check_near(const Numbers& found, const Numbers& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-14));
}

std::string refused_norm(layers::LayerKind kind, const Field& input) {
  return refusal(network({layer("layer", std::move(kind))}), input, labels);
}

Shape parameter_shape(const model::Model& model, std::size_t index) { return model.parameters.at(index).shape; }

}  // namespace

TEST_CASE("layer_norm and rms_norm divide each row of the last dimension by its own deviation", "[layers]") {
  const double epsilon = 1e-3;
  const Feed feed{{"layer.scale", {2, 3}}, {"layer.bias", {10, 20}}};
  const double a = 1 / std::sqrt(1 + epsilon), b = 3 / std::sqrt(9 + epsilon);
  check_near(norm_of(layers::LayerNorm{epsilon}, {2, 2}, {4, 6, 1, 7}, feed),
             {10 - 2 * a, 20 + 3 * a, 10 - 2 * b, 20 + 3 * b});
  check_near(norm_of(layers::LayerNorm{epsilon, false, false}, {2, 2}, {4, 6, 1, 7}), {-a, a, -b, b});
  check_near(norm_of(layers::LayerNorm{epsilon, false, true}, {2}, {4, 6}, {{"layer.bias", {10, 20}}}),
             {10 - a, 20 + a});
  const double r = std::sqrt((16 + 36) / 2.0 + epsilon);
  check_near(norm_of(layers::RmsNorm{epsilon}, {2}, {4, 6}, feed), {2 * 4 / r, 3 * 6 / r});
  check_near(norm_of(layers::RmsNorm{epsilon, true, true}, {2}, {4, 6}, feed), {10 + 2 * 4 / r, 20 + 3 * 6 / r});
}

TEST_CASE("group_norm takes the statistics of a group of channels over all positions", "[layers]") {
  // Channels 0 and 1 are 1, 3, 1, 3 and 2 and 3 are 10, 10, 30, 30.
  const Numbers x{1, 3, 10, 10, 1, 3, 30, 30};
  const double a = 1 / std::sqrt(1 + 1e-6), b = 10 / std::sqrt(100 + 1e-6);
  check_near(norm_of(layers::GroupNorm{2, 1e-6, false, false}, {2, 1, 4}, x), {-a, a, -b, -b, -a, a, b, b});
  const Feed feed{{"layer.scale", {1, 2, 3, 4}}, {"layer.bias", {0, 0, 0, 100}}};
  check_near(norm_of(layers::GroupNorm{2}, {2, 1, 4}, x, feed),
             {-a, 2 * a, -3 * b, 100 - 4 * b, -a, 2 * a, 3 * b, 100 + 4 * b});
  check_near(norm_of(layers::GroupNorm{1, 1e-6, false, false}, {2}, {4, 6}), {-a, a});
  CHECK(refused_norm(layers::GroupNorm{}, {DType::f32, {2, 2, 6}}) ==
        "layer has num_groups 32, which does not divide the 6 channels of its input f32[2,2,6] | num_groups may be one "
        "of 1, 2, 3, 6");
}

TEST_CASE("a mean much larger than the deviation costs a norm no digits", "[layers]") {
  Network net = network({layer("norm", layers::LayerNorm{0.0, false, false})});
  const model::Model model = model::make_model(net, {DType::f32, {4}}, labels);
  const double root = std::sqrt(5.0);
  const Numbers y = forward(model, {40001, 40003, 40005, 40007}).at("y");
  for (std::size_t i = 0; i < 4; ++i) CHECK(y[i] == Approx((2.0 * static_cast<double>(i) - 3) / root).epsilon(1e-6));
}

TEST_CASE("dense acts on the last dimension, whatever is before it", "[layers]") {
  const model::Model model = norm_model(layers::Dense{2}, {3, 2});
  CHECK(model.layers[0].output == Shape{3, 2});
  CHECK(parameter_shape(model, 0) == Shape{2, 2});
  CHECK(model.parameters[0].initializer.scale == lecun_scale(2));
  const Feed feed{{"layer.kernel", {1, 10, 100, 1000}}, {"layer.bias", {0.5, 0.25}}};
  CHECK(forward(model, {1, 2, 3, 4, 5, 6}, feed).at("y") == Numbers{201.5, 2010.25, 403.5, 4030.25, 605.5, 6050.25});
  CHECK(norm_model(layers::Dense{5}, {4, 3, 2}).layers[0].output == Shape{4, 3, 5});
  CHECK(refused_norm(layers::Dense{2}, {DType::f32, {}}) ==
        "layer takes features [..., N]; its input is f32[] | add flatten before it, which gives the shape [1]");
}

TEST_CASE("transpose permutes the dimensions of each example", "[layers]") {
  CHECK(norm_of(layers::Transpose{{1, 0}}, {2, 3}, {1, 2, 3, 4, 5, 6}) == Numbers{1, 4, 2, 5, 3, 6});
  CHECK(norm_model(layers::Transpose{{2, 0, 1}}, {4, 5, 6}).layers[0].output == Shape{6, 4, 5});
  CHECK(refused_norm(layers::Transpose{{1, 0}}, {DType::f32, {4}}) ==
        "layer has the permutation [1,0], which does not name each of the 1 dimensions of its input f32[4] once | they "
        "are counted from 0, for example [0]");
  CHECK(refused_norm(layers::Transpose{{0, 2, 2}}, {DType::f32, {2, 3, 4}}) ==
        "layer has the permutation [0,2,2], which does not name each of the 3 dimensions of its input f32[2,3,4] once "
        "| they are counted from 0, for example [2,1,0]");
}

TEST_CASE("norms refuse inputs without channels", "[layers]") {
  for (const layers::LayerKind& kind :
       std::vector<layers::LayerKind>{layers::LayerNorm{}, layers::RmsNorm{}, layers::GroupNorm{}}) {
    CHECK(refused_norm(kind, {DType::f32, {}}) ==
          "layer takes features [..., C]; its input is f32[] | add flatten before it, which gives the shape [1]");
  }
}

TEST_CASE("global average pooling averages all positions of sequences and images", "[layers]") {
  CHECK(norm_of(layers::GlobalAvgPool{}, {3, 2}, {1, 10, 2, 20, 6, 30}) == Numbers{3, 20});
  CHECK(norm_of(layers::GlobalAvgPool{}, {2, 1, 2, 2}, {1, 10, 2, 20, 3, 30, 6, 60}) == Numbers{3, 30});
}

TEST_CASE("gelu is exact by erf where its approximation is none", "[layers]") {
  const Numbers x{-3, -0.5, 0, 0.5, 3};
  Numbers expected;
  for (const double v : x) expected.push_back(v / 2 * (1 + std::erf(v / std::sqrt(2.0))));
  check_near(norm_of(layers::Gelu{layers::GeluFunction::exact}, {5}, x), expected);
}
