#include "core/kernel/vector_math.h"

#include "core/kernel/vector_product.h"
#include "core/ops/reduce/loops.h"

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <array>
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
                              {vector_tanh, std::tanh},   {vector_erf, std::erf}};

TEST_CASE("functions by vectors are within 4 units of libm over all of f32", "[ops]") {
  const Function f = functions[GENERATE(range(0, 8))];
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
  std::vector<double> exact(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) exact[i] = f.exact(x[i]);
  test::on_every_target([&] {
    std::vector<float> y(x.size());
    f.vector(x.size(), x.data(), y.data());
    double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double error = ulps(y[i], exact[i]);
      if (x[i] == 0) CHECK((y[i] != 0 || std::signbit(y[i]) == std::signbit(exact[i])));
      if (error > worst) {
        worst = error;
        at = x[i];
      }
    }
    CAPTURE(at);
    CHECK(worst <= (f.vector == vector_erf ? 2 : 4));
  });
}

#ifndef __clang__  // Releases are GCC's; Clang's code for the two differs in last bits.

TEST_CASE("exp and tanh by vectors have the same bits by AVX2 and AVX-512", "[ops]") {
  std::vector<float> x;
  for (int i = -40000; i <= 40000; ++i) x.push_back(static_cast<float>(i) * 0.00271F);
  for (const auto function : {vector_exp, vector_tanh}) {
    std::vector<std::vector<float>> found;
    for (const std::int64_t target : {HWY_AVX2, HWY_AVX3}) {
      if ((hwy::SupportedTargets() & target) == 0) continue;
      hwy::GetChosenTarget().Update(target);
      function(x.size(), x.data(), found.emplace_back(x.size()).data());
    }
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    for (const std::vector<float>& each : found) CHECK(each == found.front());
  }
}

#endif

// Pairs of a base and a power: all of the values at which C's pow is special, and what noise makes of bits.
std::array<std::vector<float>, 2> pairs_for_pow() {
  using Limits = std::numeric_limits<float>;
  std::array<std::vector<float>, 2> pairs;
  std::vector<float> special = {Limits::quiet_NaN()};
  for (const float value : {0.0F, 0.5F, 0.9999999F, 1.0F, 1.0000001F, 1.5F, 2.0F, 3.0F, 7.0F, 8388607.5F, 16777215.0F,
                            16777216.0F, 1e10F, 1e-40F, Limits::denorm_min(), Limits::max(), Limits::infinity()}) {
    special.insert(special.end(), {value, -value});
  }
  const auto add = [&](float base, float power) {
    pairs[0].push_back(base);
    pairs[1].push_back(power);
  };
  for (const float base : special) {
    for (const float power : special) add(base, power);
  }
  std::uint64_t state = 1;
  const auto draw = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state >> 32);
  };
  const auto fraction = [&] { return static_cast<float>(static_cast<std::int32_t>(draw())) * 0x1p-31F; };
  for (int i = 0; i < 30000; ++i) {
    const auto base = std::bit_cast<float>(draw());
    add(base, std::bit_cast<float>(draw()));
    add(base, std::round(fraction() * 5));
    const float far = std::ldexp(1.5F + fraction() / 2, static_cast<int>(draw() % 40) - 20);
    add(far, fraction() * 12);
    const float near = 1 + std::ldexp(fraction(), -static_cast<int>(draw() % 24));
    add(near, std::ldexp(fraction(), static_cast<int>(draw() % 30)));
  }
  return pairs;
}

TEST_CASE("powers by vectors are within 1 unit of libm, with its special values, and the same on every instruction set",
          "[ops]") {
  const auto pairs = pairs_for_pow();
  const std::vector<float>&x = pairs[0], &y = pairs[1];
  std::vector<float> first(x.size()), found(x.size());
  vector_pow(x.size(), x.data(), 1, y.data(), 1, first.data());
  double worst = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::pow(static_cast<double>(x[i]), static_cast<double>(y[i]));
    const bool same_sign = std::isnan(exact) || std::signbit(first[i]) == std::signbit(exact);
    const double error = same_sign ? ulps(first[i], exact) : 1e9;
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  CAPTURE(x[at], y[at], first[at]);
  CHECK(worst <= 1);
  test::on_every_target([&] {
    vector_pow(x.size(), x.data(), 1, y.data(), 1, found.data());
    std::size_t different = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool same = std::bit_cast<std::uint32_t>(found[i]) == std::bit_cast<std::uint32_t>(first[i]);
      if (!same && !std::isnan(first[i])) ++different;
    }
    CHECK(different == 0);
  });
}

TEST_CASE("a power has the same bits beside one base, one exponent or many, alone and in a chain's tile", "[ops]") {
  const std::vector<float> x(37, 1.7F), y(37, -2.3F);
  float alone = 0;
  vector_pow(1, x.data(), 0, y.data(), 0, &alone);
  for (const std::size_t x_step : {std::size_t{0}, std::size_t{1}}) {
    for (const std::size_t y_step : {std::size_t{0}, std::size_t{1}}) {
      std::vector<float> found(37);
      vector_pow(37, x.data(), x_step, y.data(), y_step, found.data());
      CHECK(found == std::vector<float>(37, alone));
    }
  }
}

TEST_CASE("the error function has the same bits on every instruction set", "[ops]") {
  std::vector<float> x, first(4001), found(4001);
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) * 0.0023F);
  vector_erf(x.size(), x.data(), first.data());
  test::on_every_target([&] {
    vector_erf(x.size(), x.data(), found.data());
    CHECK(found == first);
  });
}

TEST_CASE("an element's bits do not depend on where it lies, and results may replace operands", "[ops]") {
  const Function f = functions[GENERATE(range(0, 8))];
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

TEST_CASE("a sum by vectors has the bits of the reduce that it stands for, and keeps a negative zero", "[ops]") {
  std::vector<float> x;
  for (int i = 0; i < 40000; ++i) x.push_back(std::sin(static_cast<float>(i)));
  for (const std::size_t n :
       std::initializer_list<std::size_t>{0, 1, 15, 16, 17, 63, 64, 65, 100, 400, 3200, 16384, 16400, 40000}) {
    INFO(n);
    const float expected = ops::reduce_contiguous<ops::SumReducer>(x.data(), n);
    test::on_every_target([&] { CHECK(vector_sum(n, x.data()) == expected); });
  }
  const float negative_zero = -0.0F;
  test::on_every_target([&] { CHECK(std::signbit(vector_sum(1, &negative_zero))); });
}

}  // namespace
}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
