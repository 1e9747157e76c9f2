#include "core/ops/max_pool/max_pool.h"

#include <algorithm>
#include <limits>

#include "core/ops/max_pool/geometry.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;
using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

TEST_CASE("max pooling and its gradient are what one computes by hand", "[ops]") {
  const MaxPool pool{{2, 2}, {1, 1}, {{0, 0}, {0, 0}}};
  const MaxPoolGrad gradient{{2, 2}, {1, 1}, {{0, 0}, {0, 0}}};
  // Negative values, overlapping windows, a tie in the lower row.
  const std::vector<float> x = {-1, -2, -3,  //
                                -4, -1, -1};
  CHECK(test::run_reference<float>(pool, {{{1, 2, 3, 1}}}, {x}) == std::vector<float>{-1, -1});
  CHECK(test::run_reference<float>(gradient, {{{1, 2, 3, 1}, {1, 1, 2, 1}}}, {x, {10, 100}}) ==
        std::vector<float>{10, 0, 0, 0, 100, 0});
}

TEST_CASE("padding never wins a window, whatever the sign", "[ops]") {
  const Pairs padding = {{1, 0}, {0, 1}};
  const Case c{{{1, 1, 1, 1}}};
  CHECK(test::run_reference<float>(MaxPool{{2, 2}, {1, 1}, padding}, c, {{-5}}) == std::vector<float>{-5});
}

// The same by the definition, one element at a time.
struct ByDefinition {
  std::vector<double> y, dx;
};
ByDefinition by_definition(const PoolGeometry& g, const std::vector<float>& x, const std::vector<float>& dy) {
  ByDefinition result{std::vector<double>(dy.size()), std::vector<double>(x.size())};
  for (std::int64_t i = 0; i < std::ssize(dy); ++i) {
    const std::int64_t c = i % g.c, ow = i / g.c % g.w.out, oh = i / g.c / g.w.out % g.h.out;
    const std::int64_t n = i / g.c / g.w.out / g.h.out;
    std::int64_t winner = -1;
    for (std::int64_t kh = 0; kh < g.h.window; ++kh) {
      for (std::int64_t kw = 0; kw < g.w.window; ++kw) {
        const std::int64_t h = oh * g.h.stride - g.h.low + kh, w = ow * g.w.stride - g.w.low + kw;
        if (h < 0 || h >= g.h.in || w < 0 || w >= g.w.in) continue;
        const std::int64_t tap = ((n * g.h.in + h) * g.w.in + w) * g.c + c;
        if (winner < 0 || x[static_cast<std::size_t>(tap)] > x[static_cast<std::size_t>(winner)]) winner = tap;
      }
    }
    result.y[static_cast<std::size_t>(i)] = x[static_cast<std::size_t>(winner)];
    result.dx[static_cast<std::size_t>(winner)] += dy[static_cast<std::size_t>(i)];
  }
  return result;
}

TEST_CASE("max pooling follows its definition to the bit, ties and all", "[ops]") {
  struct Sizes {
    Shape x;
    std::vector<std::int64_t> window, strides;
    Pairs padding;
  };
  const Sizes s = GENERATE(Sizes{{3, 28, 28, 32}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}},
                           Sizes{{2, 15, 17, 19}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}},  // overlapping, padded
                           Sizes{{2, 15, 18, 16}, {3, 2}, {1, 3}, {{2, 0}, {0, 1}}},  // asymmetric
                           Sizes{{5, 29, 31, 1}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}},   // elements that no window reaches
                           Sizes{{4, 33, 33, 3}, {1, 1}, {3, 3}, {{0, 0}, {0, 0}}},   // stride over window
                           Sizes{{0, 4, 4, 3}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}},     // no examples
                           Sizes{{1, 1, 1, 1}, {1, 1}, {1, 1}, {{0, 0}, {0, 0}}});
  const MaxPool pool{s.window, s.strides, s.padding};
  const MaxPoolGrad gradient{s.window, s.strides, s.padding};
  const PoolGeometry g = pool_geometry("max_pool", s.x, s.window, s.strides, s.padding);
  const Case backward{{s.x, g.y_shape()}};
  auto operands = backward.operands();
  // Few distinct values, all negative: every window has ties.
  for (float& value : operands[0]) value = std::floor(value * 2) - 3;
  // Whole numbers: sums of overlapping windows are exact in any order.
  for (float& value : operands[1]) value = std::floor(value * 100);
  const ByDefinition expected = by_definition(g, operands[0], operands[1]);
  CAPTURE(to_string(s.x));
  CHECK(test::run_reference<double>(pool, {{s.x}}, {operands[0]}) == expected.y);
  CHECK(test::run_reference<float>(pool, {{s.x}}, {operands[0]}) ==
        std::vector<float>(expected.y.begin(), expected.y.end()));
  CHECK(test::run_reference<double>(gradient, backward, operands) == expected.dx);
  CHECK(test::run_reference<float>(gradient, backward, operands) ==
        std::vector<float>(expected.dx.begin(), expected.dx.end()));
}

TEST_CASE("a NaN is the maximum of its window, and infinities are values like others", "[ops]") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t channels : {1, 4, 21}) {
    for (std::int64_t at = 0; at < 4; ++at) {
      const Shape shape = {1, 2, 2, channels};
      std::vector<float> x(static_cast<std::size_t>(4 * channels), -inf);
      CHECK(test::run_reference<float>(MaxPool{}, {{shape}}, {x})[0] == -inf);
      x[static_cast<std::size_t>(at * channels)] = nan;
      x[static_cast<std::size_t>((at + 1) % 4 * channels)] = inf;
      CHECK(std::isnan(test::run_reference<float>(MaxPool{}, {{shape}}, {x})[0]));
      const std::vector<float> dy(static_cast<std::size_t>(channels), 7.0F);
      const auto dx = test::run_reference<float>(MaxPoolGrad{}, {{shape, {1, 1, 1, channels}}}, {x, dy});
      CHECK(dx[static_cast<std::size_t>(at * channels)] == 7.0F);
    }
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("a window of more taps than a float counts has one winner", "[ops]") {
  const std::int64_t taps = (std::int64_t{1} << 24) + 3;
  const Case c{{{1, 1, taps, 1}, {1, 1, 1, 1}}};
  std::vector<float> x(static_cast<std::size_t>(taps));
  for (const std::size_t winner : {x.size() - 1, x.size() - 3}) {
    x[winner] = 1;
    const auto kernel = test::cpu_kernel(MaxPoolGrad{{1, taps}, {1, 1}, {{0, 0}, {0, 0}}}, c);
    const std::vector<float> dx = test::run_kernel<float>(*kernel, {x, {7}}, taps);
    CHECK(dx[winner] == 7.0F);
    CHECK(std::count(dx.begin(), dx.end(), 0.0F) == taps - 1);
    x[winner] = 0;
  }
}
#endif

TEST_CASE("the derivative of max pooling agrees with differences where windows overlap", "[ops]") {
  const Mesh mesh({{"devices", 2}});
  test::check_gradient(mesh, {.types = {{DType::f64, {1, 4, 5, 5}, mesh.all()}}},
                       [](Builder& b, std::span<const Value> inputs) {
                         return b.emit(MaxPool{{3, 2}, {1, 2}, {{1, 1}, {0, 1}}}, inputs);
                       });
}

TEST_CASE("a max pooling that does not fit says why", "[ops]") {
  const auto refusal = [](const MaxPool& op, const Shape& x) { return test::refusal(op, {{DType::f32, x, {}}}); };
  CHECK(refusal({{2, 2}, {2, 2}, {{2, 0}, {0, 0}}}, {1, 4, 4, 1}) ==
        "max_pool of [1,4,4,1] with window [2,2] and padding [(2,0),(0,0)]: a window would see padding only | padding "
        "is smaller than the window, and the image is not empty");
  CHECK(refusal({{5, 2}, {2, 2}, {{0, 0}, {0, 0}}}, {1, 4, 4, 1}) ==
        "max_pool with a window of 5 over 0 + 4 + 0 elements of height | the window must fit into the padded image");
  CHECK(refusal({}, {16, 784}) ==
        "max_pool of shape [16,784] | an image has four dimensions: examples, height, width, channels");
  CHECK(test::refusal(MaxPool{}, {}) == "max_pool of 0 operands | max_pool takes 1: x");
  CHECK(test::refusal(MaxPool{}, {{DType::i32, {1, 2, 2, 1}, {}}}) ==
        "max_pool: x is i32 | max_pool takes bf16, f32 or f64, the same for all operands");
}

}  // namespace
}  // namespace pmaptrain
