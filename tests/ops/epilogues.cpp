#include <cmath>
#include <cstring>
#include <limits>

#include "core/ops/conv/geometry.h"
#include "core/ops/list.h"
#include "core/ops/max_pool/geometry.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;

const Padding same = {{1, 1}, {1, 1}}, none = {{0, 0}, {0, 0}};
const std::vector<std::int64_t> ones = {1, 1};

TEST_CASE("bias and relu follow a convolution and a product", "[ops]") {
  // 1x1 kernel as a matrix: [2 in, 3 out]
  const std::vector<std::vector<float>> values = {{1, 2, 3, 4}, {1, 2, 3, 10, 20, 30}, {-30, -50, 0.5F}};
  const std::vector<float> sums = {21 - 30, 42 - 50, 63.5F, 43 - 30, 86 - 50, 129.5F};
  std::vector<float> above = sums;
  for (float& value : above) value = std::max(value, 0.0F);
  const Case pixels{{{1, 1, 2, 2}, {1, 1, 2, 3}, {3}}, 1, {true, true, true}};
  const Case rows{{{2, 2}, {2, 3}, {3}}, 1, {true, true, true}};
  CHECK(test::run_reference<float>(Conv{}, pixels, values) == sums);
  CHECK(test::run_reference<float>(Conv{ones, none, true}, pixels, values) == above);
  CHECK(test::run_reference<float>(Matmul{}, rows, values) == sums);
  CHECK(test::run_reference<float>(Matmul{false, false, true}, rows, values) == above);
  CHECK(test::run_reference<std::int32_t>(Matmul{false, false, true}, rows, {values[0], values[1], {-30, -50, 1}}) ==
        std::vector<std::int32_t>{0, 0, 64, 13, 36, 130});
}

TEST_CASE("convolutions and products with bias and relu are close to exact, whatever is stacked", "[ops]") {
  for (const bool relu : {false, true}) {
    for (const std::vector<bool>& stacked :
         {std::vector{true, false, false}, {true, false, true}, {true, true, true}, {false, false, true}}) {
      CAPTURE(relu, stacked[0], stacked[1], stacked[2]);
      for (const std::int64_t channels : {1, 32}) {
        const Case c{{{3, 14, 15, channels}, {3, 3, channels, 24}, {24}}, 3, stacked};
        CHECK(test::distance(Conv{ones, same, relu}, c, 9 * channels) < 4);
      }
      CHECK(test::distance(Matmul{false, false, relu}, {{{16, 784}, {784, 128}, {128}}, 3, stacked}, 784) < 4);
      CHECK(test::distance(Matmul{false, true, relu}, {{{17, 63}, {33, 63}, {33}}, 3, stacked}, 63) < 4);
      CHECK(test::distance(Matmul{false, false, relu}, {{{4, 8}, {8, 3}, {3}}, 3, stacked}, 8) < 4);
    }
  }
}

// The op's CPU kernel where it has one, else its reference.
template <class Op>
std::vector<float> best(const Op& op, const Case& c, const std::vector<std::vector<float>>& operands) {
  const auto kernel = test::cpu_kernel(op, c);
  if (!kernel) return test::run_reference<float>(op, c, operands);
  return test::run_kernel(*kernel, operands, numel(test::result_type(op, c.types(DType::f32))));
}

TEST_CASE("a NaN passes the relu of a convolution and of a product, and what is below zero becomes +0", "[ops]") {
  const auto expect = [](const std::vector<float>& y) {
    bool nan = false, zero = false;
    for (const float value : y) {
      nan |= std::isnan(value);
      zero |= value == 0;
      if (std::isnan(value)) continue;
      CHECK(value >= 0);
      CHECK_FALSE(std::signbit(value));
    }
    CHECK(nan);
    CHECK(zero);
  };
  for (const std::int64_t channels : {1, 32}) {
    const Case c{{{2, 14, 14, channels}, {3, 3, channels, 32}, {32}}, 1, {true, true, true}};
    auto operands = c.operands();
    operands[0][5] = std::numeric_limits<float>::quiet_NaN();
    expect(best(Conv{ones, same, true}, c, operands));
  }
  const Case c{{{16, 64}, {64, 32}, {32}}, 1, {true, true, true}};
  auto operands = c.operands();
  operands[0][5] = std::numeric_limits<float>::quiet_NaN();
  expect(best(Matmul{false, false, true}, c, operands));
}

TEST_CASE("the kernel's gradient sums the cotangents beside it", "[ops]") {
  const auto channels = GENERATE(std::int64_t{1}, std::int64_t{8}, std::int64_t{32});
  const Case c{{{4, 14, 14, channels}, {4, 14, 14, 16}}, 3, {true, true}};
  const ConvKernelGrad op{ones, same, {3, 3, channels, 16}, true};
  const std::vector<Type> operands = c.types(DType::f32);
  const Mesh mesh;
  const std::vector<Type> results = op.infer({.mesh = mesh, .operands = operands});
  REQUIRE(results.size() == 2);
  REQUIRE(results[1].shape == Shape{16});
  const auto values = c.operands();
  const auto reference = make_reference_kernel(
      std::make_shared<ConvKernelGrad>(op),
      [](const void* self, const ReferenceCall& call) { static_cast<const ConvKernelGrad*>(self)->reference(call); },
      c.request(operands, results));
  use_one_thread_in_libraries();
  const auto chosen = op.cpu(c.request(operands, results));
  for (CpuKernel* kernel : {reference.get(), chosen.get()}) {
    if (kernel == nullptr) continue;
    std::vector<float> dkernel(static_cast<std::size_t>(3 * 9 * channels * 16)), dbias(3 * 16);
    std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
    const std::byte* from[] = {reinterpret_cast<const std::byte*>(values[0].data()),
                               reinterpret_cast<const std::byte*>(values[1].data())};
    std::byte* to[] = {reinterpret_cast<std::byte*>(dkernel.data()), reinterpret_cast<std::byte*>(dbias.data())};
    const auto misaligned = reinterpret_cast<std::uintptr_t>(scratch.data()) % 64;
    kernel->run({from, to, scratch.data() + (64 - misaligned) % 64});
    for (std::size_t d = 0; d < 3; ++d) {
      for (std::size_t o = 0; o < 16; ++o) {
        double sum = 0;
        for (std::size_t i = 0; i < 4 * 14 * 14; ++i) sum += values[1][(d * 4 * 14 * 14 + i) * 16 + o];
        CHECK(std::abs(dbias[d * 16 + o] - sum) < 1e-4);
      }
    }
    CHECK(dkernel[0] != 0);
  }
}

TEST_CASE("the gradient of pooling masks what relu has cut off", "[ops]") {
  // Maxima 3, 0 and NaN.
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::vector<float>> operands = {{1, 3, 0, 0, 5, nan, 2, 3, 0, 0, 1, 1}, {10, 20, 30}};
  const Case c{{{1, 2, 6, 1}, {1, 1, 3, 1}}, 1, {true, true}};
  const MaxPoolGrad op{{2, 2}, {2, 2}, none, true};
  const std::vector<float> expected = {0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  CHECK(test::run_reference<float>(op, c, operands) == expected);
  CHECK(best(op, c, operands) == expected);
}

TEST_CASE("pooling by vectors has the bits of the plain loops", "[ops]") {
  struct Sizes {
    Shape x;
    std::vector<std::int64_t> window, strides;
    Padding padding;
  };
  const Sizes s = GENERATE(Sizes{{3, 28, 28, 32}, {2, 2}, {2, 2}, none},
                           Sizes{{2, 9, 11, 23}, {2, 2}, {2, 2}, none},                // a row that no window reaches
                           Sizes{{2, 8, 8, 21}, {2, 2}, {2, 2}, {{1, 1}, {0, 0}}},     // partial windows
                           Sizes{{2, 8, 8, 7}, {2, 2}, {3, 2}, none},                  // stride over window
                           Sizes{{2, 15, 17, 19}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}},   // overlapping
                           Sizes{{2, 15, 18, 16}, {2, 2}, {1, 1}, {{1, 0}, {0, 1}}});  // overlapping 2x2
  CAPTURE(to_string(s.x));
  const Shape y = pool_geometry("max_pool", s.x, s.window, s.strides, s.padding).y_shape();
  for (const std::vector<bool>& stacked : {std::vector{true, true}, {true, false}, {false, true}}) {
    const MaxPool pool{s.window, s.strides, s.padding};
    Case forward{{s.x}, 2, {stacked[0]}}, backward{{s.x, y}, 2, stacked};
    auto operands = backward.operands();
    for (float& value : operands[0]) value = std::floor(value * 4);  // ties
    operands[0][3] = std::numeric_limits<float>::quiet_NaN();
    const auto equal = [](const std::vector<float>& a, const std::vector<float>& b) {
      if (a.size() != b.size()) return false;
      for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i] != b[i] && !(std::isnan(a[i]) && std::isnan(b[i]))) return false;
      }
      return true;
    };
    const auto kernel = test::cpu_kernel(pool, forward);
    if (!kernel) continue;
    CHECK(equal(test::run_kernel<float>(*kernel, {operands[0]}, 2 * numel(y)),
                test::run_reference<float>(pool, forward, {operands[0]})));
    for (const bool relu : {false, true}) {
      const MaxPoolGrad gradient{s.window, s.strides, s.padding, relu};
      CHECK(equal(test::run_kernel(*test::cpu_kernel(gradient, backward), operands, 2 * numel(s.x)),
                  test::run_reference<float>(gradient, backward, operands)));
    }
  }
}

TEST_CASE("sums by vectors have the bits of the plain loops", "[ops]") {
  struct Sizes {
    Shape x;
    std::vector<std::int64_t> dims;
  };
  const Sizes s = GENERATE(Sizes{{32, 512}, {0}}, Sizes{{700, 83}, {0}}, Sizes{{4, 14, 14, 64}, {0, 1, 2}},
                           Sizes{{1000, 3}, {0}}, Sizes{{3, 40, 21}, {1}}, Sizes{{5, 300}, {1}}, Sizes{{0, 4}, {0}});
  const Case c{{s.x}, 2, {true}};
  const auto kernel = test::cpu_kernel(ReduceSum{s.dims}, c);
  if (kernel) {
    const auto expected = test::run_reference<float>(ReduceSum{s.dims}, c, c.operands());
    CHECK(test::run_kernel(*kernel, c.operands(), std::ssize(expected)) == expected);
  }
}

TEST_CASE("the derivatives of bias and relu agree with differences, alone and with the kernel's gradient", "[ops]") {
  const Mesh mesh({{"devices", 2}});
  const auto check = [&](const Op& op, const std::vector<Shape>& shapes) {
    std::vector<Type> types;
    for (const Shape& shape : shapes) types.push_back({DType::f64, shape, types.empty() ? mesh.all() : AxisSet{}});
    test::check_gradient(mesh, {.types = types},
                         [&](Builder& b, std::span<const Value> inputs) { return b.emit(op, inputs); });
  };
  for (const bool relu : {false, true}) {
    check(Conv{{2, 1}, {{0, 1}, {2, 0}}, relu}, {{2, 4, 3, 2}, {2, 3, 2, 3}, {3}});
    check(Conv{{2, 1}, {{0, 1}, {2, 0}}, relu}, {{2, 4, 3, 2}, {2, 3, 2, 3}});
    for (const bool transpose : {false, true}) {
      check(Matmul{transpose, false, relu}, {transpose ? Shape{3, 4} : Shape{4, 3}, {3, 2}, {2}});
      check(Matmul{false, transpose, relu}, {{4, 3}, transpose ? Shape{2, 3} : Shape{3, 2}, {2}});
    }
  }
  const std::vector<Type> types = {{DType::f64, {1, 3, 3, 2}, mesh.all()}, {DType::f64, {1, 2, 2, 2}, mesh.all()}};
  for (const std::size_t which : {0U, 1U, 2U}) {  // of the two results: the first, the second, both
    test::check_gradient(mesh, {.types = types}, [&](Builder& b, std::span<const Value> inputs) {
      const auto results = b.emit_all(ConvKernelGrad{ones, none, {2, 2, 2, 2}, true}, inputs);
      if (which < 2) return results[which];
      const Value sums = b.emit(Broadcast{{2, 2, 2, 2}, {3}}, {results[1]});
      return b.emit(Mul{}, {results[0], sums});
    });
  }
}

TEST_CASE("a bias that does not fit says how long it must be", "[ops]") {
  const auto f32 = [](Shape shape) { return Type{DType::f32, std::move(shape), {}}; };
  CHECK(test::refusal(Conv{}, {f32({1, 4, 4, 1}), f32({1, 1, 1, 8}), f32({4})}) ==
        "conv: its result has 8 features, but bias is [4] | make the bias [8]");
  CHECK(test::refusal(Matmul{}, {f32({2, 3}), f32({3, 5}), f32({1, 5})}) ==
        "matmul: its result has 5 features, but bias is [1,5] | make the bias [5]");
  CHECK(test::refusal(Matmul{}, {f32({2, 3}), f32({3, 5}), {DType::f64, {5}, {}}}) ==
        "matmul: its operands are f32 and bias is f64 | cast the bias to the operands' element type; beside bf16 it "
        "may be f32");
  CHECK(test::refusal(Matmul{}, {f32({2, 3})}) ==
        "matmul of 1 operands | matmul takes two matrices, and may take a bias");
}

}  // namespace
}  // namespace pmaptrain
