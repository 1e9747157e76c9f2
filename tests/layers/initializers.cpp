#include <cmath>

#include "core/layers/attention.h"
#include "core/layers/batch_norm.h"
#include "core/layers/norms.h"
#include "core/layers/reshape.h"
#include "tests/catch.h"
#include "tests/model/fixture.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using model::Fans;
using model::Initializer;
using model::InitializerKind;

namespace {

// A convolution of 3 x 5, from 4 to 6 channels.
constexpr Fans conv{4, 6, 15};

struct Made {
  InitializerKind kind;
  double scale, low;
};

void check(const layers::KernelInit& init, const Made& expected) {
  const Initializer made = init(conv);
  CHECK(made.kind == expected.kind);
  CHECK(made.scale == Approx(expected.scale).epsilon(1e-12));
  CHECK(made.low == Approx(expected.low).epsilon(1e-12));
}

model::Model initialized(layers::LayerKind kind, Shape input) {
  return model::make_model(network({layer("layer", std::move(kind)), layer("flatten_0", layers::Flatten{})}),
                           {DType::f32, std::move(input)}, labels);
}

}  // namespace

TEST_CASE("a variance scaling has the variance scale / fan, as jax.nn.initializers", "[layers]") {
  constexpr double cut = 0.87962566103423978;
  using enum InitializerKind;
  // fan_in is 60, fan_out 90, and their mean 75.
  check(layers::LecunNormalInit{}, {truncated_normal, std::sqrt(1 / 60.0) / cut, 0});
  check(layers::HeNormalInit{}, {truncated_normal, std::sqrt(2 / 60.0) / cut, 0});
  check(layers::GlorotNormalInit{}, {truncated_normal, std::sqrt(1 / 75.0) / cut, 0});
  check(layers::LecunUniformInit{}, {uniform, 2 * std::sqrt(3 / 60.0), -std::sqrt(3 / 60.0)});
  check(layers::HeUniformInit{}, {uniform, 2 * std::sqrt(6 / 60.0), -std::sqrt(6 / 60.0)});
  check(layers::GlorotUniformInit{}, {uniform, 2 * std::sqrt(3 / 75.0), -std::sqrt(3 / 75.0)});
  using Distribution = layers::InitDistribution;
  check(layers::VarianceScalingInit{0.5, layers::Fan::out, Distribution::normal}, {normal, std::sqrt(0.5 / 90), 0});
  check(layers::VarianceScalingInit{3, layers::Fan::average, Distribution::uniform},
        {uniform, 2 * std::sqrt(9 / 75.0), -std::sqrt(9 / 75.0)});
}

TEST_CASE("initializers without a fan have their numbers, and a kernel without one is LeCun normal", "[layers]") {
  using enum InitializerKind;
  check(layers::NormalInit{0.25}, {normal, 0.25, 0});
  check(layers::TruncatedNormalInit{0.25}, {truncated_normal, 0.25, 0});
  check(layers::UniformInit{0.25}, {uniform, 0.25, 0});
  check(layers::ZerosInit{}, {constant, 0, 0});
  check(layers::OnesInit{}, {constant, 1, 0});
  check(layers::ConstantInit{-2.5}, {constant, -2.5, 0});
  check(layers::OrthogonalInit{1.5}, {orthogonal, 1.5, 0});
  CHECK(layers::OrthogonalInit{}.initial(conv).columns == 6);
  CHECK(layers::KernelInit()(conv).scale == lecun_scale(60));
  CHECK_FALSE(layers::VectorInit()().draws());
  CHECK(layers::VectorInit()(model::ones).scale == 1);
}

TEST_CASE("each layer gives its parameters the initializers that its keys name", "[layers]") {
  layers::Dense dense{3};
  dense.kernel_init = layers::ConstantInit{0.5};
  dense.bias_init = layers::ConstantInit{-1};
  const model::Model plain = initialized(dense, {2});
  CHECK(plain.parameters[0].initializer.scale == 0.5);
  CHECK(plain.parameters[1].initializer.scale == -1);
  layers::LayerNorm norm;
  norm.scale_init = layers::ZerosInit{};
  norm.bias_init = layers::OnesInit{};
  const model::Model normed = initialized(norm, {2});
  CHECK(normed.parameters[0].initializer.scale == 0);
  CHECK(normed.parameters[1].initializer.scale == 1);
  layers::BatchNorm batch;
  batch.scale_init = layers::ConstantInit{0.25};
  const model::Model batched = initialized(batch, {2});
  CHECK(batched.parameters[0].initializer.scale == 0.25);
  CHECK(batched.parameters[3].initializer.scale == 1);  // var
  layers::Attention attention{2};
  attention.kernel_init = layers::OrthogonalInit{};
  attention.bias_init = layers::ConstantInit{0.125};
  const model::Model attending = initialized(attention, {5, 8});
  for (std::size_t i = 0; i < attending.parameters.size(); ++i) {
    const Initializer& made = attending.parameters[i].initializer;
    CHECK(made.kind == (i % 2 == 0 ? InitializerKind::orthogonal : InitializerKind::constant));
    if (i % 2 == 0) CHECK(made.columns == 8);  // heads x features of a head, or the features of the output
  }
}

TEST_CASE("an initializer of a bias or a scale that a layer does not have is refused", "[layers]") {
  layers::Dense dense{3, false};
  dense.bias_init = layers::OnesInit{};
  CHECK(refusal(network({layer("dense_0", dense)}), {DType::f32, {4}}, labels) ==
        "dense_0 has bias_init and use_bias: false | leave out bias_init, or write use_bias: true");
  layers::RmsNorm norm{1e-6, false};
  norm.scale_init = layers::OnesInit{};
  CHECK(refusal(network({layer("layer", norm)}), {DType::f32, {4}}, labels) ==
        "layer has scale_init and use_scale: false | leave out scale_init, or write use_scale: true");
}
