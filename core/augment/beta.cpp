#include "core/augment/beta.h"

#include <cmath>
#include <numbers>

namespace pmaptrain::augment {
namespace {

// In (0, 1).
double open_uniform(WordStream& words) { return (static_cast<double>(words.next()) + 0.5) / 4294967296.0; }

double normal(WordStream& words) {
  const double radius = std::sqrt(-2 * std::log(open_uniform(words)));
  return radius * std::cos(2 * std::numbers::pi * open_uniform(words));
}

// The logarithm of a draw from Gamma(alpha, 1): by Marsaglia and Tsang (2000) for alpha + 1, times u^(1 / alpha). The
// draw itself would be 0 for a small alpha.
double log_gamma_draw(double alpha, WordStream& words) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  const double power = std::log(open_uniform(words)) / alpha;
  while (true) {
    const double x = normal(words), u = open_uniform(words);
    const double cube = std::pow(1 + c * x, 3);
    if (cube > 0 && std::log(u) < x * x / 2 + d - d * cube + d * std::log(cube)) return std::log(d * cube) + power;
  }
}

}  // namespace

// A draw from Beta(alpha, alpha) is g / (g + h) with two draws of Gamma(alpha, 1).
double draw_beta(double alpha, WordStream& words) {
  const double g = log_gamma_draw(alpha, words), h = log_gamma_draw(alpha, words);
  return 1 / (1 + std::exp(h - g));
}

std::uint32_t as_share(double share) { return static_cast<std::uint32_t>(std::lround(share * Mix::whole)); }

}  // namespace pmaptrain::augment
