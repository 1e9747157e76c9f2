#include "core/kernel/vector_math.h"

#include "core/kernel/vector_product.h"
#include "core/ops/reduce/fold.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/catch.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

// The distance in f32 numbers between neighbours at the exact value; 0 for equal infinities and two NaN.
double ulps(float found, double exact) {
  if (std::isnan(exact) || std::isnan(found)) return std::isnan(exact) && std::isnan(found) ? 0 : 1e9;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(found)) return rounded == found ? 0 : 1e9;
  const float above = std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity());
  return std::abs(static_cast<double>(found) - exact) / (static_cast<double>(above) - std::abs(rounded));
}

struct Function {
  void (*vector)(std::size_t, const float*, float*);
  double (*exact)(double);
};

const Function functions[] = {{vector_exp, std::exp},     {vector_expm1, std::expm1}, {vector_log, std::log},
                              {vector_log1p, std::log1p}, {vector_sin, std::sin},     {vector_cos, std::cos},
                              {vector_tanh, std::tanh}};

TEST_CASE("functions by vectors are within 4 units of libm over all of f32", "[ops]") {
  const Function f = functions[GENERATE(range(0, 7))];
  // Every 9973rd pattern of bits, and the values at the edges of each range.
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 9973) {
    x.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  using Limits = std::numeric_limits<float>;
  for (const float value :
       {0.0F, 1.0F, 1e-8F, 39000.0F, 39000.5F, 3.1415927F, 88.72283F, 88.72284F, 87.33654F, 103.97F, 104.5F, 1e30F,
        18.72F, 1e-30F, Limits::infinity(), Limits::max(), Limits::min(), Limits::denorm_min(), Limits::quiet_NaN()}) {
    x.push_back(value);
    x.push_back(-value);
  }
  std::vector<float> y(x.size());
  f.vector(x.size(), x.data(), y.data());
  double worst = 0;
  float at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = ulps(y[i], f.exact(x[i]));
    if (error > worst) {
      worst = error;
      at = x[i];
    }
  }
  CAPTURE(at);
  CHECK(worst <= 4);
}

TEST_CASE("an element's bits do not depend on where it lies, and results may replace operands", "[ops]") {
  const Function f = functions[GENERATE(range(0, 7))];
  std::vector<float> x(67), together(67);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01F + 0.13F * static_cast<float>(i);
  f.vector(x.size(), x.data(), together.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    float alone = 0;
    f.vector(1, &x[i], &alone);
    CHECK(std::bit_cast<std::uint32_t>(alone) == std::bit_cast<std::uint32_t>(together[i]));
  }
  f.vector(x.size(), x.data(), x.data());
  CHECK(x == together);
}

TEST_CASE("a sum by vectors has the bits of the fold that it stands for, and keeps a negative zero", "[ops]") {
  std::vector<float> x;
  for (int i = 0; i < 40000; ++i) x.push_back(std::sin(static_cast<float>(i)));
  for (const std::size_t n :
       std::initializer_list<std::size_t>{0, 1, 15, 16, 17, 63, 64, 65, 100, 400, 3200, 16384, 16400, 40000}) {
    INFO(n);
    const float expected = ops::fold_contiguous<ops::SumFold>(x.data(), n);
    test::on_every_target([&] { CHECK(vector_sum(n, x.data()) == expected); });
  }
  const float negative_zero = -0.0F;
  test::on_every_target([&] { CHECK(std::signbit(vector_sum(1, &negative_zero))); });
}

}  // namespace
}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
