#include "core/ops/conv/conv.h"

#include "core/kernel/in_f32.h"
#include "core/ops/all.h"
#include "core/ops/conv/geometry.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;
using test::Devices;
using Values = std::vector<std::vector<float>>;

struct Sizes {
  std::int64_t n, h, w, c, kh, kw, o;
  std::vector<std::int64_t> strides;
  Padding padding;
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;

  Shape x() const { return {n, h, w, c}; }
  Shape kernel() const { return {kh, kw, c / groups, o}; }
  Shape y() const { return conv_geometry("conv", x(), kernel(), strides, padding, dilation, groups).y_shape(); }
  Conv conv() const { return {strides, padding, false, dilation, groups}; }
  ConvInputGrad input_grad() const { return {strides, padding, x(), dilation, groups}; }
  ConvKernelGrad kernel_grad() const { return {strides, padding, kernel(), false, dilation, groups}; }
};

std::ostream& operator<<(std::ostream& out, const Sizes& s) {
  return out << to_string(s.x()) << " with " << to_string(s.kernel()) << " strides " << to_string(s.strides)
             << " padding " << pairs_text(s.padding) << " dilation " << to_string(s.dilation) << " groups " << s.groups;
}

TEST_CASE("a convolution and its gradients are what one computes by hand", "[ops]") {
  // One channel, 2x3 image, 2x2 kernel, one row of zeros above.
  const Sizes s{1, 2, 3, 1, 2, 2, 1, {1, 1}, {{1, 0}, {0, 0}}};
  REQUIRE(s.y() == Shape{1, 2, 2, 1});
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, kernel = {1, 10, 100, 1000}, dy = {1, 2, 3, 4};
  CHECK(test::run_reference<float>(Conv{s.strides, s.padding}, {{s.x(), s.kernel()}}, {x, kernel}) ==
        std::vector<float>{2100, 3200, 5421, 6532});
  CHECK(test::run_reference<float>(ConvInputGrad{s.strides, s.padding, s.x()}, {{s.kernel(), s.y()}}, {kernel, dy}) ==
        std::vector<float>{103, 1234, 2040, 300, 3400, 4000});
  CHECK(test::run_reference<float>(ConvKernelGrad{s.strides, s.padding, s.kernel()}, {{s.x(), s.y()}}, {x, dy}) ==
        std::vector<float>{11, 18, 5 + 32, 8 + 39});
}

TEST_CASE("a convolution mixes channels as height, width, in, out", "[ops]") {
  // A 1x1 kernel is a matrix: [2 in, 3 out].
  CHECK(test::run_reference<float>(Conv{}, {{{1, 1, 2, 2}, {1, 1, 2, 3}}}, {{1, 2, 3, 4}, {1, 2, 3, 10, 20, 30}}) ==
        std::vector<float>{21, 42, 63, 43, 86, 129});
}

TEST_CASE("a dilated kernel skips elements, and groups keep to their channels", "[ops]") {
  // Taps at distance 2 along the width: x[i] + 10 x[i + 2].
  const Sizes dilated{1, 1, 5, 1, 1, 2, 1, {1, 1}, {{0, 0}, {0, 0}}, {1, 2}};
  CHECK(test::run_reference<float>(dilated.conv(), {{dilated.x(), dilated.kernel()}}, {{1, 2, 3, 4, 5}, {1, 10}}) ==
        std::vector<float>{31, 42, 53});
  // Two groups of one channel in and two out.
  const Sizes grouped{1, 1, 1, 2, 1, 1, 4, {1, 1}, {{0, 0}, {0, 0}}, {1, 1}, 2};
  CHECK(test::run_reference<float>(grouped.conv(), {{grouped.x(), grouped.kernel()}}, {{3, 5}, {1, 10, 100, 1000}}) ==
        std::vector<float>{3, 30, 500, 5000});
}

TEST_CASE("convolutions are close to exact for every size, stride, padding and stacking", "[ops]") {
  const Sizes s = GENERATE(Sizes{1, 1, 1, 1, 1, 1, 1, {1, 1}, {{0, 0}, {0, 0}}},      // left to the reference
                           Sizes{3, 13, 11, 5, 3, 3, 7, {1, 1}, {{1, 1}, {1, 1}}},    // odd sizes
                           Sizes{2, 28, 28, 1, 3, 3, 32, {1, 1}, {{1, 1}, {1, 1}}},   // first layer
                           Sizes{2, 14, 14, 32, 3, 3, 64, {1, 1}, {{1, 1}, {1, 1}}},  // second layer
                           Sizes{2, 15, 17, 16, 3, 5, 16, {2, 3}, {{0, 2}, {3, 1}}},  // asymmetric
                           Sizes{2, 16, 16, 8, 3, 3, 16, {2, 2}, {{0, 0}, {0, 0}}},   // a row that no window reaches
                           Sizes{2, 16, 17, 8, 2, 2, 16, {3, 3}, {{0, 0}, {1, 0}}},   // stride over window
                           Sizes{5, 9, 9, 17, 1, 1, 33, {1, 1}, {{0, 0}, {0, 0}}},    // 1x1
                           Sizes{1, 7, 7, 16, 7, 7, 16, {1, 1}, {{0, 0}, {0, 0}}},    // window of the whole image
                           Sizes{2, 8, 8, 4, 3, 3, 8, {1, 1}, {{4, 5}, {3, 6}}},      // padding over window
                           Sizes{2, 19, 21, 3, 9, 11, 4, {1, 1}, {{4, 4}, {5, 5}}},   // kernels of tiles:
                           Sizes{1, 13, 14, 8, 33, 33, 16, {1, 1}, {{16, 16}, {16, 16}}},  // larger than the image
                           Sizes{2, 30, 25, 4, 17, 2, 6, {3, 1}, {{8, 9}, {0, 1}}},        // in one dimension
                           Sizes{2, 24, 33, 6, 8, 15, 4, {2, 2}, {{7, 0}, {0, 14}}, {2, 2}, 2},
                           Sizes{1, 9, 9, 5, 40, 12, 4, {2, 1}, {{40, 40}, {30, 3}}},  // taps always on padding
                           Sizes{2, 16, 17, 8, 3, 3, 16, {1, 1}, {{2, 2}, {3, 3}}, {2, 3}},
                           Sizes{2, 19, 16, 16, 3, 2, 8, {2, 3}, {{1, 0}, {0, 2}}, {3, 2}},
                           Sizes{2, 12, 12, 16, 3, 3, 32, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 2},
                           Sizes{3, 11, 13, 6, 3, 3, 15, {2, 1}, {{1, 1}, {0, 1}}, {1, 2}, 3},
                           Sizes{2, 14, 14, 24, 3, 3, 24, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 24},  // depthwise
                           Sizes{2, 3, 2, 192, 3, 3, 192, {1, 1}, {{1, 1}, {1, 1}}});             // short rows
  CAPTURE(s);
  const auto length = static_cast<std::int64_t>(numel(s.kernel()));
  for (const std::int64_t devices : {1, 3}) {
    for (const std::vector<bool>& stacked : {std::vector{true, false}, {false, true}, {true, true}, {false, false}}) {
      CAPTURE(devices, stacked[0], stacked[1]);
      CHECK(test::distance(s.conv(), {{s.x(), s.kernel()}, devices, stacked}, length / s.o) < 4);
      CHECK(test::distance(s.input_grad(), {{s.kernel(), s.y()}, devices, stacked}, length / s.c) < 4);
      CHECK(test::distance(s.kernel_grad(), {{s.x(), s.y()}, devices, stacked}, numel(s.y()) / s.o) < 4);
    }
  }
}

TEST_CASE("a convolution of no examples gives nothing, and its kernel's gradient is zero", "[ops]") {
  const Sizes s{0, 28, 28, 1, 3, 3, 8, {1, 1}, {{1, 1}, {1, 1}}};
  const Case forward{{s.x(), s.kernel()}}, gradient{{s.x(), s.y()}};
  CHECK(test::cpu_kernel(Conv{s.strides, s.padding}, forward) == nullptr);
  CHECK(test::run_reference<float>(Conv{s.strides, s.padding}, forward, forward.operands()).empty());
  CHECK(test::run_reference<float>(ConvKernelGrad{s.strides, s.padding, s.kernel()}, gradient, {{}, {}}) ==
        std::vector<float>(72, 0.0F));
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("an example's bits in a convolution do not depend on the examples beside it", "[ops]") {
  const Padding same = {{1, 1}, {1, 1}};
  const std::vector<std::int64_t> ones = {1, 1};
  const Sizes s = GENERATE(Sizes{16, 28, 28, 1, 3, 3, 32, {1, 1}, {{1, 1}, {1, 1}}},
                           Sizes{16, 14, 14, 32, 3, 3, 64, {1, 1}, {{1, 1}, {1, 1}}});
  for (const std::int64_t devices : {2, 3, 8}) {
    CHECK(test::same_bits_alone(Conv{ones, same}, {{s.x(), s.kernel()}, devices, {true, false}}, Devices::merged));
    CHECK(test::same_bits_alone(ConvInputGrad{ones, same, s.x()}, {{s.kernel(), s.y()}, devices, {false, true}},
                                Devices::merged));
    CHECK(test::same_bits_alone(ConvKernelGrad{ones, same, s.kernel()}, {{s.x(), s.y()}, devices, {true, true}},
                                Devices::apart));
  }
  for (const Sizes& v : {Sizes{4, 14, 14, 32, 3, 3, 64, {1, 1}, {{2, 2}, {2, 2}}, {2, 2}},
                         Sizes{4, 14, 14, 32, 3, 3, 64, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 2},
                         Sizes{4, 14, 14, 8, 11, 11, 8, {1, 1}, {{5, 5}, {5, 5}}},
                         Sizes{4, 14, 14, 32, 3, 3, 32, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 32},
                         Sizes{4, 4, 4, 192, 3, 3, 192, {1, 1}, {{1, 1}, {1, 1}}},
                         Sizes{4, 8, 8, 160, 3, 3, 224, {2, 2}, {{0, 1}, {0, 1}}}}) {
    CAPTURE(v);
    CHECK(test::same_bits_alone(v.conv(), {{v.x(), v.kernel()}, 3, {true, false}}, Devices::merged));
    CHECK(test::same_bits_alone(v.input_grad(), {{v.kernel(), v.y()}, 3, {false, true}}, Devices::merged));
    CHECK(test::same_bits_alone(v.kernel_grad(), {{v.x(), v.y()}, 3, {true, true}}, Devices::apart));
  }
}

TEST_CASE("a large convolution takes the library's kernel and says its name", "[ops]") {
  const auto kernel = test::cpu_kernel(Conv{{1, 1}, {{1, 1}, {1, 1}}}, {{{16, 14, 14, 32}, {3, 3, 32, 64}}});
  REQUIRE(kernel != nullptr);
  CHECK_FALSE(kernel->implementation().empty());
  CHECK(kernel->implementation() != "reference");
}

TEST_CASE("a large kernel is not read again for each of the short rows of an image", "[ops]") {
  const auto names = [](std::int64_t width, std::int64_t channels) {
    const Sizes s{4, 4, width, channels, 3, 3, channels, {1, 1}, {{1, 1}, {1, 1}}};
    return std::pair(test::cpu_kernel(s.conv(), {{s.x(), s.kernel()}})->implementation(),
                     test::cpu_kernel(s.input_grad(), {{s.kernel(), s.y()}})->implementation());
  };
  const auto [first, first_of_gradient] = names(8, 192);
  if (first == "brgconv:avx512_core") {  // which reads it again
    CHECK(names(4, 192) == std::pair<std::string, std::string>("jit:avx512_core", "jit:avx512_core"));
    CHECK(names(4, 64) == std::pair(first, first_of_gradient));
  } else {
    CHECK(names(4, 192) == std::pair(first, first_of_gradient));
  }
}
#endif

TEST_CASE("the gradients of a convolution with a large kernel are no reference's", "[ops]") {
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  for (const std::int64_t k : {9, 17, 33}) {
    INFO(k);
    const Sizes s{2, 28, 28, 8, k, k, 8, {1, 1}, {{k / 2, k / 2}, {k / 2, k / 2}}};
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (dtype == DType::bf16 && !multiplies_bf16_faster()) continue;
      const auto implementation = [&](const Op& op, const Shape& a, const Shape& b, const Shape& result) {
        const Type operands[] = {{dtype, a, {}}, {dtype, b, {}}}, results[] = {{DType::f32, result, {}}};
        return make_cpu_kernel(op, {operands, results, 1, {true, true}}, KernelChoice::best)->implementation();
      };
      CHECK(implementation(s.input_grad(), s.kernel(), s.y(), s.x()).find("ref") == std::string::npos);
      CHECK(implementation(s.kernel_grad(), s.x(), s.y(), s.kernel()).find("ref") == std::string::npos);
    }
  }
#endif
}

TEST_CASE("a convolution that does not fit says which sizes meet", "[ops]") {
  const auto refusal = [](const Conv& op, const Shape& x, const Shape& kernel) {
    return test::refusal(op, {{DType::f32, x, {}}, {DType::f32, kernel, {}}});
  };
  CHECK(refusal({}, {16, 28, 28, 1}, {3, 3, 3, 32}) ==
        "conv: x [16,28,28,1] has 1 channels, but kernel [3,3,3,32] takes 3 | make the kernel [3,3,1,32]");
  CHECK(refusal({}, {16, 2, 28, 1}, {3, 3, 1, 32}) ==
        "conv with a window of 3 over 0 + 2 + 0 elements of height | the window must fit into the padded image");
  CHECK(refusal({{1, 0}, {{0, 0}, {0, 0}}}, {16, 28, 28, 1}, {3, 3, 1, 32}) ==
        "conv with a stride of 0 in width | a stride is at least 1");
  CHECK(refusal({{1, 1}, {{0, 0}, {0, -1}}}, {16, 28, 28, 1}, {3, 3, 1, 32}) ==
        "conv with padding [(0,0),(0,-1)] | padding is a number of rows before and after, each 0 or more");
  CHECK(refusal({{1}, {{0, 0}, {0, 0}}}, {16, 28, 28, 1}, {3, 3, 1, 32}) ==
        "conv with 1 strides and 2 paddings | give one of each for height and one for width");
  CHECK(refusal({{1, 1}, {{0, 0}, {0, 0}}, false, {3, 1}}, {16, 6, 28, 1}, {3, 3, 1, 32}) ==
        "conv with a window of 3 dilated by 3 over 0 + 6 + 0 elements of height | the window must fit into the padded "
        "image");
  CHECK(refusal({{1, 1}, {{0, 0}, {0, 0}}, false, {0, 1}}, {16, 6, 28, 1}, {3, 3, 1, 32}) ==
        "conv with a dilation of 0 in height | a dilation is at least 1");
  CHECK(refusal({{1, 1}, {{0, 0}, {0, 0}}, false, {2}}, {16, 6, 28, 1}, {3, 3, 1, 32}) ==
        "conv with 1 dilations | give one for height and one for width");
  CHECK(
      refusal({{1, 1}, {{0, 0}, {0, 0}}, false, {1, 1}, 2}, {16, 28, 28, 3}, {3, 3, 1, 32}) ==
      "conv: x [16,28,28,3] and kernel [3,3,1,32] in 2 groups | the channels of x and those of the result divide over "
      "the groups");
  CHECK(refusal({{1, 1}, {{0, 0}, {0, 0}}, false, {1, 1}, 2}, {16, 28, 28, 4}, {3, 3, 4, 32}) ==
        "conv: x [16,28,28,4] has 4 channels in 2 groups, but kernel [3,3,4,32] takes 4 | make the kernel [3,3,2,32]");
  CHECK(test::refusal(Conv{}, {{DType::f32, {1, 1, 1, 1}, {}}, {DType::f64, {1, 1, 1, 1}, {}}}) ==
        "conv: kernel is f64 and x is f32 | conv takes bf16, f32 or f64, the same for all operands");
  CHECK(test::refusal(ConvInputGrad{{1, 1}, {{0, 0}, {0, 0}}, {1, 3, 3, 1}},
                      {{DType::f32, {2, 2, 1, 1}, {}}, {DType::f32, {1, 3, 3, 1}, {}}}) ==
        "conv_input_grad: x [1,3,3,1] and kernel [2,2,1,1] give [1,2,2,1], but dy is [1,3,3,1] | dy has the shape of "
        "the convolution's result");
}

TEST_CASE("the derivatives of a convolution and of its gradients agree with differences, channels and all", "[ops]") {
  const Mesh mesh({{"devices", 2}});
  const Sizes s{2, 4, 3, 2, 2, 3, 3, {2, 1}, {{0, 1}, {2, 0}}};
  const auto check = [&](const Op& op, const Shape& first, const Shape& second) {
    const std::vector<Type> types = {{DType::f64, first, mesh.all()}, {DType::f64, second, {}}};
    test::check_gradient(mesh, {.types = types},
                         [&](Builder& b, std::span<const Value> inputs) { return b.emit(op, inputs); });
  };
  check(Conv{s.strides, s.padding}, s.x(), s.kernel());
  check(ConvInputGrad{s.strides, s.padding, s.x()}, s.kernel(), s.y());
  check(ConvKernelGrad{s.strides, s.padding, s.kernel()}, s.x(), s.y());
  const Sizes g{1, 5, 4, 4, 2, 2, 2, {2, 1}, {{0, 1}, {2, 0}}, {2, 3}, 2};
  check(g.conv(), g.x(), g.kernel());
  check(g.input_grad(), g.kernel(), g.y());
  check(g.kernel_grad(), g.x(), g.y());
}

TEST_CASE("the taps of a window are those that its positions have on the image", "[ops]") {
  for (std::int64_t in = 0; in < 8; ++in) {
    for (std::int64_t low = 0; low < 5; ++low) {
      for (std::int64_t high = 0; high < 4; ++high) {
        for (std::int64_t window = 1; window < 6; ++window) {
          for (std::int64_t stride = 1; stride < 6; ++stride) {
            for (std::int64_t dilation = 1; dilation < 5; ++dilation) {
              Window w{in, window, stride, low, high, 0, dilation};
              if (in + low + high < w.extent()) continue;
              w.out = (in + low + high - w.extent()) / stride + 1;
              std::int64_t taps = 0;
              for (std::int64_t p = 0; p < w.out; ++p) taps += std::max<std::int64_t>(0, w.last(p) - w.first(p));
              INFO(in << " in, window " << window << ", stride " << stride << ", padding " << low << " and " << high
                      << ", dilation " << dilation);
              REQUIRE(w.taps() == static_cast<double>(taps));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("the taps of a window are counted at once, however large it and the image are", "[ops]") {
  const std::int64_t in = 1'000'000'000'000, window = in / 2;
  CHECK(Window{in, window, 1, 0, 0, in - window + 1}.taps() == 5e11 * (5e11 + 1));
  CHECK(Window{in, 1, 1, 0, 0, in}.taps() == 1e12);
}

TEST_CASE("a convolution's cost counts no padding", "[ops]") {
  // 3x3 over 4x4, padded by one: 2+3+3+2 rows of taps, the same of columns.
  const std::vector<Type> operands = {{DType::f32, {2, 4, 4, 3}, {}}, {DType::f32, {3, 3, 3, 5}, {}}};
  const std::vector<Type> results = {{DType::f32, {2, 4, 4, 5}, {}}};
  const Cost cost = Conv{{1, 1}, {{1, 1}, {1, 1}}}.cost(Mesh{}, operands, results);
  CHECK(cost.flops == 2.0 * 2 * 3 * 5 * 10 * 10);
  CHECK(cost.bytes == 4.0 * (2 * 16 * 3 + 9 * 3 * 5 + 2 * 16 * 5));
}

}  // namespace
}  // namespace pmaptrain
