#include <cmath>

#include "core/model/layers.h"
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

void check(const spec::KernelInit& init, const Made& expected) {
  const Initializer made = model::initializer_of(init, conv);
  CHECK(made.kind == expected.kind);
  CHECK(made.scale == Approx(expected.scale).epsilon(1e-12));
  CHECK(made.low == Approx(expected.low).epsilon(1e-12));
}

model::Model initialized(spec::LayerKind kind, Shape input) {
  return model::make_model(network({layer("layer", std::move(kind)), layer("flatten_0", spec::Flatten{})}),
                           {DType::f32, std::move(input)}, labels);
}

}  // namespace

TEST_CASE("a variance scaling has the variance scale / fan, as jax.nn.initializers", "[model]") {
  constexpr double cut = 0.87962566103423978;
  using enum InitializerKind;
  // fan_in is 60, fan_out 90, and their mean 75.
  check(spec::LecunNormalInit{}, {truncated_normal, std::sqrt(1 / 60.0) / cut, 0});
  check(spec::HeNormalInit{}, {truncated_normal, std::sqrt(2 / 60.0) / cut, 0});
  check(spec::GlorotNormalInit{}, {truncated_normal, std::sqrt(1 / 75.0) / cut, 0});
  check(spec::LecunUniformInit{}, {uniform, 2 * std::sqrt(3 / 60.0), -std::sqrt(3 / 60.0)});
  check(spec::HeUniformInit{}, {uniform, 2 * std::sqrt(6 / 60.0), -std::sqrt(6 / 60.0)});
  check(spec::GlorotUniformInit{}, {uniform, 2 * std::sqrt(3 / 75.0), -std::sqrt(3 / 75.0)});
  using Distribution = spec::InitDistribution;
  check(spec::VarianceScalingInit{0.5, spec::Fan::out, Distribution::normal}, {normal, std::sqrt(0.5 / 90), 0});
  check(spec::VarianceScalingInit{3, spec::Fan::average, Distribution::uniform},
        {uniform, 2 * std::sqrt(9 / 75.0), -std::sqrt(9 / 75.0)});
}

TEST_CASE("initializers without a fan have their numbers, and a kernel without one is LeCun normal", "[model]") {
  using enum InitializerKind;
  check(spec::NormalInit{0.25}, {normal, 0.25, 0});
  check(spec::TruncatedNormalInit{0.25}, {truncated_normal, 0.25, 0});
  check(spec::UniformInit{0.25}, {uniform, 0.25, 0});
  check(spec::ZerosInit{}, {constant, 0, 0});
  check(spec::OnesInit{}, {constant, 1, 0});
  check(spec::ConstantInit{-2.5}, {constant, -2.5, 0});
  check(spec::OrthogonalInit{1.5}, {orthogonal, 1.5, 0});
  CHECK(model::initializer_of(spec::OrthogonalInit{}, conv).columns == 6);
  CHECK(model::initializer_of(spec::KernelInit(), conv).scale == lecun_scale(60));
  CHECK_FALSE(model::initializer_of(spec::VectorInit()).draws());
  CHECK(model::initializer_of(spec::VectorInit(), model::ones).scale == 1);
}

TEST_CASE("each layer gives its parameters the initializers that its keys name", "[model]") {
  spec::Dense dense{3};
  dense.kernel_init = spec::ConstantInit{0.5};
  dense.bias_init = spec::ConstantInit{-1};
  const model::Model plain = initialized(dense, {2});
  CHECK(plain.parameters[0].initializer.scale == 0.5);
  CHECK(plain.parameters[1].initializer.scale == -1);
  spec::LayerNorm norm;
  norm.scale_init = spec::ZerosInit{};
  norm.bias_init = spec::OnesInit{};
  const model::Model normed = initialized(norm, {2});
  CHECK(normed.parameters[0].initializer.scale == 0);
  CHECK(normed.parameters[1].initializer.scale == 1);
  spec::BatchNorm batch;
  batch.scale_init = spec::ConstantInit{0.25};
  const model::Model batched = initialized(batch, {2});
  CHECK(batched.parameters[0].initializer.scale == 0.25);
  CHECK(batched.parameters[3].initializer.scale == 1);  // var
  spec::Attention attention{2};
  attention.kernel_init = spec::OrthogonalInit{};
  attention.bias_init = spec::ConstantInit{0.125};
  const model::Model attending = initialized(attention, {5, 8});
  for (std::size_t i = 0; i < attending.parameters.size(); ++i) {
    const Initializer& made = attending.parameters[i].initializer;
    CHECK(made.kind == (i % 2 == 0 ? InitializerKind::orthogonal : InitializerKind::constant));
    if (i % 2 == 0) CHECK(made.columns == 8);  // heads x features of a head, or the features of the output
  }
}

TEST_CASE("an initializer of a bias or a scale that a layer does not have is refused", "[model]") {
  spec::Dense dense{3, false};
  dense.bias_init = spec::OnesInit{};
  CHECK(refusal(network({layer("dense_0", dense)}), {DType::f32, {4}}, labels) ==
        "dense_0 has bias_init and use_bias: false | leave out bias_init, or write use_bias: true");
  spec::RmsNorm norm{1e-6, false};
  norm.scale_init = spec::OnesInit{};
  CHECK(refusal(network({layer("layer", norm)}), {DType::f32, {4}}, labels) ==
        "layer has scale_init and use_scale: false | leave out scale_init, or write use_scale: true");
}
