// Convolutions of volumes: the same ops, with a depth before the height.
#include "core/ops/all.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/geometry.h"
#include "tests/catch.h"
#include "tests/gradients.h"
#include "tests/ops/kernels.h"

namespace pmaptrain {
namespace {

using namespace ops;

struct VolumeSizes {
  Shape x, kernel;
  std::vector<std::int64_t> strides = {1, 1, 1};
  Padding padding = {{0, 0}, {0, 0}, {0, 0}};
  std::vector<std::int64_t> dilation = {1, 1, 1};
  std::int64_t groups = 1;

  Shape y() const { return conv_geometry("conv", x, kernel, strides, padding, dilation, groups).y_shape(); }
  Conv conv() const { return {strides, padding, false, dilation, groups}; }
  ConvInputGrad input_grad() const { return {strides, padding, x, dilation, groups}; }
  ConvKernelGrad kernel_grad() const { return {strides, padding, kernel, false, dilation, groups}; }
};

std::ostream& operator<<(std::ostream& out, const VolumeSizes& s) {
  return out << to_string(s.x) << " with " << to_string(s.kernel) << " strides " << to_string(s.strides) << " padding "
             << pairs_text(s.padding) << " dilation " << to_string(s.dilation) << " groups " << s.groups;
}

std::vector<float> counted_from(std::int64_t first, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(static_cast<float>((first + 7 * i) % 11 - 5));
  return values;
}

TEST_CASE("a convolution of a volume and its gradients are what one computes by hand", "[ops]") {
  // One channel and one column: depth 3 by height 2, a kernel of 2 by 2, one slice of zeros in front.
  const VolumeSizes s{{1, 3, 2, 1, 1}, {2, 2, 1, 1, 1}, {1, 1, 1}, {{1, 0}, {0, 0}, {0, 0}}};
  REQUIRE(s.y() == Shape{1, 3, 1, 1, 1});
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, kernel = {1, 10, 100, 1000}, dy = {1, 2, 3};
  CHECK(test::run_reference<float>(s.conv(), {{s.x, s.kernel}}, {x, kernel}) == std::vector<float>{2100, 4321, 6543});
  CHECK(test::run_reference<float>(s.input_grad(), {{s.kernel, s.y()}}, {kernel, dy}) ==
        std::vector<float>{102, 1020, 203, 2030, 300, 3000});
  CHECK(test::run_reference<float>(s.kernel_grad(), {{s.x, s.y()}}, {x, dy}) ==
        std::vector<float>{2 + 9, 4 + 12, 1 + 6 + 15, 2 + 8 + 18});
}

TEST_CASE("volumes whose kernel has one slice are their slices as images", "[ops]") {
  const VolumeSizes s{{2, 3, 4, 5, 2}, {1, 3, 2, 2, 3}, {1, 2, 1}, {{0, 0}, {1, 1}, {0, 1}}};
  const Shape x{6, 4, 5, 2}, kernel{3, 2, 2, 3};
  const Conv of_slices{{2, 1}, {{1, 1}, {0, 1}}};
  const std::vector<float> numbers = counted_from(0, numel(x)), weights = counted_from(3, numel(kernel));
  CHECK(test::run_reference<float>(s.conv(), {{s.x, s.kernel}}, {numbers, weights}) ==
        test::run_reference<float>(of_slices, {{x, kernel}}, {numbers, weights}));
}

TEST_CASE("convolutions of volumes are close to exact for every size, stride, padding and stacking", "[ops]") {
  const VolumeSizes s =
      GENERATE(VolumeSizes{{1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}},  // left to the reference
               VolumeSizes{{2, 6, 7, 5, 3}, {3, 3, 3, 3, 7}, {1, 1, 1}, {{1, 1}, {1, 1}, {1, 1}}},
               VolumeSizes{{2, 8, 8, 8, 16}, {3, 3, 3, 16, 16}, {2, 2, 2}, {{0, 1}, {0, 1}, {0, 1}}},
               VolumeSizes{{2, 7, 9, 8, 4}, {2, 3, 2, 4, 8}, {3, 1, 2}, {{2, 0}, {0, 2}, {3, 1}}},
               VolumeSizes{{1, 9, 8, 10, 8}, {3, 2, 3, 8, 8}, {1, 1, 1}, {{2, 2}, {0, 1}, {2, 2}}, {2, 1, 2}},
               VolumeSizes{{2, 5, 6, 6, 8}, {3, 3, 3, 4, 12}, {1, 2, 1}, {{1, 1}, {1, 1}, {1, 1}}, {1, 1, 1}, 2},
               VolumeSizes{{2, 5, 6, 6, 12}, {3, 3, 3, 1, 12}, {1, 1, 1}, {{1, 1}, {1, 1}, {1, 1}}, {1, 1, 1}, 12},
               VolumeSizes{{1, 4, 9, 9, 2}, {3, 9, 9, 2, 4}, {1, 1, 1}, {{1, 1}, {4, 4}, {4, 4}}});
  CAPTURE(s);
  const std::int64_t length = numel(s.kernel);
  for (const std::int64_t devices : {1, 3}) {
    for (const std::vector<bool>& stacked : {std::vector{true, false}, {false, true}, {true, true}}) {
      CAPTURE(devices, stacked[0], stacked[1]);
      CHECK(test::distance(s.conv(), {{s.x, s.kernel}, devices, stacked}, length / s.kernel.back()) < 4);
      CHECK(test::distance(s.input_grad(), {{s.kernel, s.y()}, devices, stacked}, length / s.x.back()) < 4);
      CHECK(test::distance(s.kernel_grad(), {{s.x, s.y()}, devices, stacked}, numel(s.y()) / s.y().back()) < 4);
    }
  }
}

#ifndef PMAPTRAIN_REFERENCE_KERNELS
TEST_CASE("a convolution of volumes takes the library's kernel", "[ops]") {
  const VolumeSizes s{{2, 8, 8, 8, 16}, {3, 3, 3, 16, 16}, {1, 1, 1}, {{1, 1}, {1, 1}, {1, 1}}};
  const std::vector<std::string> names = {test::cpu_kernel(s.conv(), {{s.x, s.kernel}})->implementation(),
                                          test::cpu_kernel(s.input_grad(), {{s.kernel, s.y()}})->implementation(),
                                          test::cpu_kernel(s.kernel_grad(), {{s.x, s.y()}})->implementation()};
  for (const std::string& name : names) CHECK(name.find("ref") == std::string::npos);
}
#endif

TEST_CASE("windows of a volume are as long as its dimensions", "[ops]") {
  const auto refusal = [](const Conv& op, const Shape& x, const Shape& kernel) {
    return test::refusal(op, {{DType::f32, x, {}}, {DType::f32, kernel, {}}});
  };
  CHECK(refusal(Conv{}, {1, 4, 4, 4, 2}, {2, 2, 2, 2, 3}) ==
        "conv with 2 strides and 2 paddings | give one of each for depth, for height and for width");
  CHECK(
      refusal(VolumeSizes{}.conv(), {1, 4, 4, 4, 2}, {2, 2, 2, 3}) ==
      "conv of x [1,4,4,4,2] and kernel [2,2,2,3] | x is [examples, height, width, channels] and a kernel is [height, "
      "width, channels in, channels out]; of volumes both have a depth before the height");
  CHECK(refusal(VolumeSizes{}.conv(), {1, 4, 4, 4, 2}, {5, 2, 2, 2, 3}) ==
        "conv with a window of 5 over 0 + 4 + 0 elements of depth | the window must fit into the padded image");
  CHECK(refusal(VolumeSizes{}.conv(), {1, 4, 4, 4, 2}, {2, 2, 2, 3, 3}) ==
        "conv: x [1,4,4,4,2] has 2 channels, but kernel [2,2,2,3,3] takes 3 | make the kernel [2,2,2,2,3]");
}

}  // namespace
}  // namespace pmaptrain
