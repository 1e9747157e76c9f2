// Initializers of the spec with the sizes of a parameter: jax.nn.initializers.
#include <cmath>

#include "core/model/layers.h"

namespace pmaptrain::model {
namespace {

// The standard deviation of a standard normal distribution truncated at two.
constexpr double cut_deviation = 0.87962566103423978;

Initializer made(const spec::ZerosInit&) { return zeros; }
Initializer made(const spec::OnesInit&) { return ones; }
Initializer made(const spec::ConstantInit& init) { return {InitializerKind::constant, init.value}; }
Initializer made(const spec::NormalInit& init) { return {InitializerKind::normal, init.stddev}; }
Initializer made(const spec::TruncatedNormalInit& init) { return {InitializerKind::truncated_normal, init.stddev}; }
Initializer made(const spec::UniformInit& init) { return {InitializerKind::uniform, init.scale}; }

double fan(spec::Fan mode, const Fans& fans) {
  switch (mode) {
    case spec::Fan::in: return fans.in();
    case spec::Fan::out: return fans.out();
    case spec::Fan::average: break;
  }
  return (fans.in() + fans.out()) / 2;
}

Initializer made(const spec::VarianceScalingInit& init, const Fans& fans) {
  const double variance = init.scale / fan(init.mode, fans);
  switch (init.distribution) {
    case spec::InitDistribution::normal: return {InitializerKind::normal, std::sqrt(variance)};
    case spec::InitDistribution::uniform: {
      const double high = std::sqrt(3 * variance);
      return {InitializerKind::uniform, 2 * high, -high};
    }
    case spec::InitDistribution::truncated_normal: break;
  }
  return {InitializerKind::truncated_normal, std::sqrt(variance) / cut_deviation};
}

using enum spec::Fan;
using Distribution = spec::InitDistribution;

Initializer made(const spec::LecunNormalInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{1, in, Distribution::truncated_normal}, fans);
}
Initializer made(const spec::LecunUniformInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{1, in, Distribution::uniform}, fans);
}
Initializer made(const spec::HeNormalInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{2, in, Distribution::truncated_normal}, fans);
}
Initializer made(const spec::HeUniformInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{2, in, Distribution::uniform}, fans);
}
Initializer made(const spec::GlorotNormalInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{1, average, Distribution::truncated_normal}, fans);
}
Initializer made(const spec::GlorotUniformInit&, const Fans& fans) {
  return made(spec::VarianceScalingInit{1, average, Distribution::uniform}, fans);
}
Initializer made(const spec::OrthogonalInit& init, const Fans& fans) {
  return {InitializerKind::orthogonal, init.scale, 0, fans.columns};
}

}  // namespace

Initializer initializer_of(const spec::KernelInit& init, const Fans& fans) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { made(kind, fans); }) {
          return made(kind, fans);
        } else {
          return made(kind);
        }
      },
      init.value_or(spec::LecunNormalInit{}));
}

Initializer initializer_of(const spec::VectorInit& init, const Initializer& otherwise) {
  return init ? std::visit([](const auto& kind) { return made(kind); }, *init) : otherwise;
}

}  // namespace pmaptrain::model
