// Matrix products and convolutions, which libraries carry out on CUDA, against the references.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/gpus.h"
#include "tests/cuda/on_gpu.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

Type array(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

Shape transposed(Shape shape, bool swap) {
  if (swap) std::swap(shape[shape.size() - 2], shape[shape.size() - 1]);
  return shape;
}

// On one logical device, and on three that share what is not stacked.
void check_stacked(const Op& op, const std::vector<Type>& operands, const std::vector<bool>& stacked) {
  check_on_gpu({op, operands});
  check_on_gpu({op, operands, 3, stacked});
  check_on_gpu({op, operands, 3});
}

struct Convolution {
  Shape x, kernel;
  std::vector<std::int64_t> strides;
  ops::Padding padding;
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;
};
const Convolution convolutions[] = {
    {{4, 9, 7, 5}, {3, 2, 5, 7}, {1, 1}, {{0, 0}, {0, 0}}},            // no size is a multiple of another
    {{4, 28, 28, 1}, {3, 3, 1, 32}, {1, 1}, {{1, 1}, {1, 1}}},         // one channel
    {{2, 16, 16, 64}, {3, 3, 64, 32}, {2, 2}, {{0, 1}, {0, 1}}},       // strides, padding at the end
    {{2, 12, 12, 8}, {3, 3, 8, 8}, {1, 1}, {{2, 2}, {2, 2}}, {2, 2}},  // dilation
    {{2, 8, 8, 12}, {3, 3, 3, 8}, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 4},
    {{2, 8, 8, 16}, {3, 3, 1, 32}, {1, 1}, {{1, 1}, {1, 1}}, {1, 1}, 16},  // depthwise, two results for a channel
};

Shape result_of(const Op& op, const std::vector<Type>& operands) {
  const Mesh mesh;
  return op.infer({.mesh = mesh, .operands = operands})[0].shape;
}

}  // namespace

TEST_CASE("a GPU's matrix products are the reference's, however they are transposed, with bias and relu",
          "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  for (const DType dtype : {DType::bf16, DType::f32, DType::f64}) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) {
        const Type x = array(dtype, transposed({37, 65}, a)), y = array(dtype, transposed({65, 10}, b));
        check_stacked(ops::Matmul{.transpose_a = a, .transpose_b = b}, {x, y}, {true, false});
        for (const bool relu : {false, true}) {
          const ops::Matmul op{.transpose_a = a, .transpose_b = b, .relu = relu};
          check_stacked(op, {x, y, array(dtype, {10})}, {true, false, false});
        }
        const ops::BatchMatmul batch{.transpose_a = a, .transpose_b = b};
        check_stacked(batch, {array(dtype, transposed({3, 6, 33}, a)), array(dtype, transposed({3, 33, 5}, b))},
                      {true, false});
      }
    }
  }
}

TEST_CASE("a GPU's products of many rows, and of one column, have bias and relu", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const ops::Matmul op{.relu = true};
    check_on_gpu({op, {array(dtype, {65536, 10}), array(dtype, {10, 10}), array(dtype, {10})}});
    check_on_gpu({op, {array(dtype, {37, 65}), array(dtype, {65, 1}), array(dtype, {1})}});
    check_on_gpu({op, {array(dtype, {37, 65}), array(dtype, {65, 8}), array(dtype, {8})}, 3, {true, true, true}});
  }
}

TEST_CASE("a GPU's products of bf16 are added up in f32, and only what is bf16 is rounded", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  const Type x = array(DType::bf16, {16, 256}), y = array(DType::bf16, {256, 8}), bias = array(DType::f32, {8});
  check_on_gpu({ops::Matmul{}, {x, y, bias}});
  check_on_gpu({ops::Matmul{.preferred_element_type = DType::f32}, {x, y}});
  check_on_gpu({ops::Matmul{.relu = true, .preferred_element_type = DType::f32}, {x, y, bias}});
}

TEST_CASE("a GPU's convolutions and their gradients are the reference's, with kernels of HWIO",
          "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  for (const Convolution& c : convolutions) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      const Type x = array(dtype, c.x), kernel = array(dtype, c.kernel), bias = array(dtype, {c.kernel[3]});
      for (const bool relu : {false, true}) {
        const ops::Conv op{c.strides, c.padding, relu, c.dilation, c.groups, {}};
        check_stacked(op, {x, kernel, bias}, {true, false, false});
      }
      const Type y =
          array(dtype, result_of(ops::Conv{c.strides, c.padding, false, c.dilation, c.groups, {}}, {x, kernel}));
      check_stacked(ops::ConvInputGrad{c.strides, c.padding, c.x, c.dilation, c.groups, {}}, {kernel, y},
                    {false, true});
      for (const bool with_bias : {false, true}) {
        const ops::ConvKernelGrad op{c.strides, c.padding, c.kernel, with_bias, c.dilation, c.groups, {}};
        check_stacked(op, {x, y}, {true, true});
      }
    }
  }
}

TEST_CASE("the gradient of a bias is the sum over many pixels, in parts of parts", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  const Type x = array(DType::f32, {8, 130, 128, 1}), y = array(DType::f32, {8, 130, 128, 3});
  check_on_gpu({ops::ConvKernelGrad{{1, 1}, {{0, 0}, {0, 0}}, {1, 1, 1, 3}, true, {1, 1}, 1, {}}, {x, y}});
}

TEST_CASE("a GPU's products and convolutions in TF32 are the reference's but for the rounding of operands to 11 bits",
          "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  const auto check = [](const Op& op, const std::vector<Type>& operands) {
    KernelCase c{op, operands};
    c.tf32 = true;
    for (const Type& type : operands) {
      std::vector<float> values(static_cast<std::size_t>(numel(type)));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(7 * i + operands.size()));
      c.values.push_back(bytes_of(values));
    }
    c.complete(0);
    const Bytes found = run_on_gpu(c)[0], expected = run_reference(c)[0];
    const auto number = [](const Bytes& bytes, std::size_t i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      return value;
    };
    float largest = 0, furthest = 0;
    for (std::size_t i = 0; i < expected.size() / sizeof(float); ++i) {
      largest = std::max(largest, std::abs(number(expected, i)));
      furthest = std::max(furthest, std::abs(number(found, i) - number(expected, i)));
    }
    INFO(op.name() << ": " << furthest << " of " << largest);
    CHECK(largest > 0.5F);
    CHECK(furthest <= 0.004F * largest);
  };
  check(ops::Matmul{}, {array(DType::f32, {64, 256}), array(DType::f32, {256, 32})});
  const Convolution& c = convolutions[1];
  const Type x = array(DType::f32, c.x), kernel = array(DType::f32, c.kernel);
  const ops::Conv conv{c.strides, c.padding, false, c.dilation, c.groups, {}};
  const Type y = array(DType::f32, result_of(conv, {x, kernel}));
  check(conv, {x, kernel});
  check(ops::ConvInputGrad{c.strides, c.padding, c.x, c.dilation, c.groups, {}}, {kernel, y});
  check(ops::ConvKernelGrad{c.strides, c.padding, c.kernel, false, c.dilation, c.groups, {}}, {x, y});
}

TEST_CASE("a relu within a GPU's product or convolution keeps NaN", "[cuda][gpu][kernels]") {
  if (!has_gpus()) return;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> ones(4, 1), x{1, nan, -1, 2};
  const KernelCase product{ops::Matmul{.relu = true},
                           {array(DType::f32, {4, 1}), array(DType::f32, {1, 1}), array(DType::f32, {1})},
                           1,
                           {},
                           {bytes_of(x), bytes_of<float>({1}), bytes_of<float>({0})}};
  const KernelCase convolution{
      ops::Conv{.relu = true},
      {array(DType::f32, {1, 2, 2, 1}), array(DType::f32, {1, 1, 1, 1}), array(DType::f32, {1})},
      1,
      {},
      {bytes_of(x), bytes_of<float>({1}), bytes_of<float>({0})}};
  for (KernelCase c : {product, convolution}) {
    c.complete(1);
    std::vector<float> found(4);
    std::memcpy(found.data(), run_on_gpu(c).front().data(), 16);
    INFO(to_string(c.op));
    CHECK(found[0] == 1);
    CHECK(found[1] != found[1]);
    CHECK(found[2] == 0);
    CHECK(found[3] == 2);
  }
}

TEST_CASE("a GPU's result that is off by more than rounding is found", "[cuda]") {
  const std::vector<Type> types{array(DType::f32, {3})};
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto found = [&](const std::vector<float>& values, const std::vector<float>& expected) {
    return beyond_rounding(types, {bytes_of(values)}, {bytes_of(expected)});
  };
  CHECK(found({1, 100, nan}, {1, 100, nan}).empty());
  CHECK(found({1.0001F, 100, infinity}, {1, 100, infinity}).empty());
  CHECK(found({1.001F, 100, 0}, {1, 100, 0}).starts_with("result 0, element 0: 1.001"));
  CHECK(found({1, 100, nan}, {1, 100, 0}).starts_with("result 0, element 2: nan, expected 0"));
  CHECK(found({1, 100, 0}, {1, 100, nan}).starts_with("result 0, element 2: 0, expected nan"));
  CHECK(found({1, 100, -infinity}, {1, 100, infinity}).starts_with("result 0, element 2: -inf, expected inf"));
}
