// Convolutions whose channels make their own results, which kernels of ours carry out.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/ops/conv/conv.h"
#include "core/ops/conv/geometry.h"
#include "core/ops/conv/runs.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"
#include "tests/ops/targets.h"

namespace pmaptrain {
namespace {

using namespace ops;
using test::Case;

struct DepthwiseSizes {
  std::int64_t n, h, w, c, times, kh, kw;
  std::vector<std::int64_t> strides;
  Padding padding;
  std::vector<std::int64_t> dilation;

  Shape x() const { return {n, h, w, c}; }
  Shape kernel() const { return {kh, kw, 1, c * times}; }
  Shape y() const { return conv_geometry("conv", x(), kernel(), strides, padding, dilation, c).y_shape(); }
  Conv conv() const { return {strides, padding, false, dilation, c}; }
  ConvInputGrad input_grad() const { return {strides, padding, x(), dilation, c}; }
  ConvKernelGrad kernel_grad() const { return {strides, padding, kernel(), false, dilation, c}; }
};

std::ostream& operator<<(std::ostream& out, const DepthwiseSizes& s) {
  return out << to_string(s.x()) << " with " << to_string(s.kernel()) << " strides " << to_string(s.strides)
             << " padding " << pairs_text(s.padding) << " dilation " << to_string(s.dilation);
}

const std::vector<DepthwiseSizes> cases = {
    {1, 1, 1, 2, 2, 1, 1, {1, 1}, {{0, 0}, {0, 0}}, {1, 1}},
    {2, 14, 14, 16, 2, 3, 3, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}},
    {2, 14, 14, 16, 1, 3, 3, {1, 1}, {{2, 2}, {2, 2}}, {2, 2}},
    {2, 13, 11, 5, 3, 3, 3, {2, 2}, {{1, 1}, {1, 1}}, {1, 1}},   // odd channels
    {3, 9, 31, 7, 4, 5, 5, {1, 2}, {{2, 2}, {1, 3}}, {1, 2}},    // more taps than a block has
    {2, 17, 16, 9, 5, 2, 4, {3, 2}, {{0, 1}, {3, 0}}, {2, 3}},   // strides and dilations that share no factor
    {2, 16, 17, 6, 2, 2, 2, {3, 4}, {{0, 0}, {1, 0}}, {1, 1}},   // elements that no window reaches
    {1, 12, 12, 4, 2, 3, 3, {2, 2}, {{2, 2}, {2, 2}}, {2, 2}},   // a dilation that the stride divides
    {1, 5, 4, 8, 2, 3, 3, {1, 1}, {{7, 9}, {6, 8}}, {1, 1}},     // windows that lie in the padding
    {1, 7, 6, 3, 8, 7, 6, {1, 1}, {{3, 3}, {3, 3}}, {1, 1}},     // a window as large as the image
    {2, 1, 40, 33, 2, 1, 9, {1, 1}, {{0, 0}, {8, 0}}, {1, 1}}};  // a causal row

TEST_CASE("depthwise convolutions are close to exact for every size, stride, dilation and stacking", "[ops]") {
  const auto check = [](const DepthwiseSizes& s, std::int64_t devices, const std::vector<bool>& stacked) {
    CAPTURE(s, devices, stacked[0], stacked[1]);
    CHECK(test::distance(s.conv(), {{s.x(), s.kernel()}, devices, stacked}, s.kh * s.kw) < 4);
    CHECK(test::distance(s.input_grad(), {{s.kernel(), s.y()}, devices, stacked}, s.kh * s.kw * s.times) < 4);
    CHECK(test::distance(s.kernel_grad(), {{s.x(), s.y()}, devices, stacked}, numel(s.y()) / s.c) < 4);
  };
  for (const DepthwiseSizes& s : cases) {
    for (const std::vector<bool>& stacked : {std::vector{true, false}, {false, true}, {true, true}, {false, false}}) {
      check(s, 3, stacked);
    }
  }
#ifndef PMAPTRAIN_REFERENCE_KERNELS
  test::on_every_target([&] {
    for (const DepthwiseSizes& s : cases) check(s, 1, {true, true});
  });
#endif
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("a depthwise convolution with several results a channel or a dilated gradient is ours", "[ops]") {
  const auto names = [](const DepthwiseSizes& s) {
    return std::vector{test::cpu_kernel(s.conv(), {{s.x(), s.kernel()}})->implementation(),
                       test::cpu_kernel(s.input_grad(), {{s.kernel(), s.y()}})->implementation(),
                       test::cpu_kernel(s.kernel_grad(), {{s.x(), s.y()}})->implementation()};
  };
  const std::string ours = "depthwise by vectors of channels";
  CHECK(names(cases[1]) == std::vector<std::string>(3, ours));
  const auto dilated = names(cases[2]);
  CHECK(dilated[0] != ours);
  CHECK(dilated[1] == ours);
  CHECK(dilated[2] == ours);
  const DepthwiseSizes plain = {2, 14, 14, 16, 1, 3, 3, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}};
  for (const std::string& name : names(plain)) CHECK(name != ours);
}

TEST_CASE("an example's bits in a depthwise convolution do not depend on the examples beside it", "[ops]") {
  for (const DepthwiseSizes& s : cases) {
    CAPTURE(s);
    // Our kernels take each device apart.
    const auto expected = [](const CpuKernel& kernel) {
      return kernel.library_calls() > 0 ? test::Devices::merged : test::Devices::apart;
    };
    const Case forward{{s.x(), s.kernel()}, 3, {true, false}}, backward{{s.kernel(), s.y()}, 3, {false, true}};
    CHECK(test::same_bits_alone(s.conv(), forward, expected(*test::cpu_kernel(s.conv(), forward))));
    CHECK(test::same_bits_alone(s.input_grad(), backward, expected(*test::cpu_kernel(s.input_grad(), backward))));
    CHECK(test::same_bits_alone(s.kernel_grad(), {{s.x(), s.y()}, 3, {true, true}}, test::Devices::apart));
  }
}
#endif

TEST_CASE("a depthwise convolution without results has gradients of zero", "[ops]") {
  const DepthwiseSizes s = {1, 4, 4, 2, 0, 2, 2, {1, 1}, {{0, 0}, {0, 0}}, {2, 2}};
  CHECK(test::distance(s.input_grad(), {{s.kernel(), s.y()}}, 1) == 0);
  CHECK(test::distance(s.kernel_grad(), {{s.x(), s.y()}}, 1) == 0);
}

TEST_CASE("bias and relu follow a depthwise convolution, and a NaN passes", "[ops]") {
  for (const DepthwiseSizes& s : cases) {
    for (const std::vector<bool>& stacked : {std::vector{true, false, false}, {true, true, true}}) {
      for (const bool relu : {false, true}) {
        CAPTURE(s, relu, stacked[1]);
        Conv op = s.conv();
        op.relu = relu;
        CHECK(test::distance(op, {{s.x(), s.kernel(), {s.c * s.times}}, 2, stacked}, s.kh * s.kw + 1) < 4);
      }
    }
  }
  const DepthwiseSizes s = cases[1];
  Conv op = s.conv();
  op.relu = true;
  const Case c{{s.x(), s.kernel()}};
  auto operands = c.operands();
  operands[0][0] = std::numeric_limits<float>::quiet_NaN();
  const auto kernel = test::cpu_kernel(op, c);
  const auto y =
      kernel ? test::run_kernel(*kernel, operands, numel(s.y())) : test::run_reference<float>(op, c, operands);
  CHECK(std::isnan(y[0]));
  CHECK(std::isnan(y[1]));
  CHECK(std::count_if(y.begin(), y.end(), [](float v) { return std::isnan(v); }) == 4 * 2);
  CHECK(std::count(y.begin(), y.end(), 0.0F) > 0);
  CHECK(std::none_of(y.begin(), y.end(), [](float v) { return v < 0 || (v == 0 && std::signbit(v)); }));
}

TEST_CASE("the kernel's gradient of a depthwise convolution sums the cotangents beside it", "[ops]") {
  const DepthwiseSizes s = cases[4];
  ConvKernelGrad op = s.kernel_grad();
  op.bias = true;
  const Case c{{s.x(), s.y()}, 2, {true, true}};
  const std::vector<Type> operands = c.types(DType::f32);
  const Mesh mesh;
  const std::vector<Type> results = op.infer({.mesh = mesh, .operands = operands});
  const auto kernel = op.cpu(c.request(operands, results));
#ifdef PMAPTRAIN_REFERENCE_KERNELS
  CHECK(kernel == nullptr);
#else
  REQUIRE(kernel != nullptr);
  const auto values = c.operands();
  const std::size_t features = static_cast<std::size_t>(s.c * s.times);
  std::vector<float> dkernel(static_cast<std::size_t>(2 * numel(s.kernel()))), dbias(2 * features);
  std::vector<float> scratch(kernel->scratch_bytes() / sizeof(float));
  const std::byte* from[] = {reinterpret_cast<const std::byte*>(values[0].data()),
                             reinterpret_cast<const std::byte*>(values[1].data())};
  std::byte* to[] = {reinterpret_cast<std::byte*>(dkernel.data()), reinterpret_cast<std::byte*>(dbias.data())};
  kernel->run({from, to, reinterpret_cast<std::byte*>(scratch.data())});
  const std::size_t pixels = static_cast<std::size_t>(numel(s.y())) / features;
  for (std::size_t i = 0; i < 2 * features; ++i) {
    double sum = 0;
    for (std::size_t p = 0; p < pixels; ++p) sum += values[1][(i / features * pixels + p) * features + i % features];
    CHECK(std::abs(dbias[i] - sum) < 1e-4);
  }
#endif
}

TEST_CASE("the gradients of a depthwise convolution's kernels agree with differences of its values", "[ops]") {
  // Linear in image and kernel: a difference of any size is exact but for rounding.
  for (const DepthwiseSizes& s : cases) {
    CAPTURE(s);
    const auto x = test::noise(numel(s.x()), 1), kernel = test::noise(numel(s.kernel()), 2);
    const auto dy = test::noise(numel(s.y()), 3);
    const auto run = [](const auto& op, const Case& c, const std::vector<std::vector<float>>& operands) {
      const auto own = test::cpu_kernel(op, c);
      if (!own) return test::run_reference<float>(op, c, operands);
      return test::run_kernel(*own, operands, numel(test::result_type(op, c.types(DType::f32))));
    };
    const auto inner = [](const std::vector<float>& a, const std::vector<float>& b) {
      double sum = 0;
      for (std::size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
      return sum;
    };
    const auto dx = run(s.input_grad(), {{s.kernel(), s.y()}}, {kernel, dy});
    const auto dkernel = run(s.kernel_grad(), {{s.x(), s.y()}}, {x, dy});
    const auto value = [&](const std::vector<float>& at_x, const std::vector<float>& at_kernel) {
      return inner(run(s.conv(), {{s.x(), s.kernel()}}, {at_x, at_kernel}), dy);
    };
    const double base = value(x, kernel);
    const double bound = 1e-6 * std::sqrt(static_cast<double>(numel(s.y()) * s.kh * s.kw + 1));
    for (std::size_t i = 0; i < x.size(); i += 1 + x.size() / 23) {
      auto moved = x;
      moved[i] += 1.0F;
      CHECK(std::abs(value(moved, kernel) - base - dx[i]) < 8 * bound);
    }
    for (std::size_t i = 0; i < kernel.size(); i += 1 + kernel.size() / 23) {
      auto moved = kernel;
      moved[i] += 1.0F;
      CHECK(std::abs(value(x, moved) - base - dkernel[i]) < 8 * bound);
    }
  }
}

TEST_CASE("the derivatives of a dilated depthwise convolution and of its gradients agree with differences", "[ops]") {
  const Mesh mesh({{"devices", 2}});
  const DepthwiseSizes s{1, 5, 4, 3, 2, 2, 2, {2, 1}, {{0, 1}, {2, 0}}, {2, 3}};
  const auto check = [&](const Op& op, const Shape& first, const Shape& second) {
    const std::vector<Type> types = {{DType::f64, first, mesh.all()}, {DType::f64, second, {}}};
    test::check_gradient(mesh, {.types = types},
                         [&](Builder& b, std::span<const Value> inputs) { return b.emit(op, inputs); });
  };
  check(s.conv(), s.x(), s.kernel());
  check(s.input_grad(), s.kernel(), s.y());
  check(s.kernel_grad(), s.x(), s.y());
}

TEST_CASE("the runs of a window cover each target once and say whom it meets, whatever the sizes", "[ops]") {
  using Meeting = std::array<std::int64_t, 3>;  // position, tap, element
  for (std::int64_t in = 1; in < 8; ++in) {
    for (std::int64_t window = 1; window < 5; ++window) {
      for (std::int64_t stride = 1; stride < 5; ++stride) {
        for (std::int64_t dilation = 1; dilation < 4; ++dilation) {
          for (const std::int64_t low : {0, 1, 5}) {
            Window w{in, window, stride, low, 2, 0, dilation};
            if (in + low + 2 < w.extent()) continue;
            w.out = (in + low + 2 - w.extent()) / stride + 1;
            INFO(in << " in, window " << window << ", stride " << stride << ", padding " << low << ", dilation "
                    << dilation);
            std::vector<Meeting> expected;
            for (std::int64_t p = 0; p < w.out; ++p) {
              for (std::int64_t k = w.first(p); k < w.last(p); ++k) {
                expected.push_back({p, k, w.start(p) + k * dilation});
              }
            }
            const auto check = [&](const std::vector<Run>& runs, std::int64_t targets, bool transposed) {
              std::vector<Meeting> found;
              std::vector<int> covered(static_cast<std::size_t>(targets));
              for (const Run& run : runs) {
                for (std::int64_t q = 0; q < run.count; ++q) {
                  const std::int64_t target = run.first + q * run.stride;
                  ++covered.at(static_cast<std::size_t>(target));
                  for (std::int64_t t = 0; t < run.taps; ++t) {
                    const std::int64_t source = run.source + q * run.source_stride + t * run.source_tap_stride;
                    const std::int64_t tap = run.tap + t * run.tap_stride;
                    found.push_back(transposed ? Meeting{source, tap, target} : Meeting{target, tap, source});
                  }
                }
              }
              std::sort(found.begin(), found.end());
              REQUIRE(found == expected);
              REQUIRE(covered == std::vector<int>(covered.size(), 1));
            };
            check(runs_to_positions(w), w.out, false);
            check(runs_to_elements(w), w.in, true);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace pmaptrain
