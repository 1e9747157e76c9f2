// Matrix products and convolutions, which libraries carry out on CUDA, against the references.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/on_gpu.h"
#include "tests/gpu/gpus.h"

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

std::string name_of(const Convolution& c, DType dtype) {
  return std::string(to_string(dtype)) + to_string(c.x) + " by " + to_string(c.kernel);
}

// A convolution and its gradients.
struct Three {
  KernelCase forward, input_grad, kernel_grad;
};
Three three_of(const Convolution& c, DType dtype, bool relu = false) {
  const Type x = array(dtype, c.x), kernel = array(dtype, c.kernel), bias = array(dtype, {c.kernel[3]});
  const ops::Conv conv{c.strides, c.padding, relu, c.dilation, c.groups, {}};
  const Type y = array(dtype, result_of(conv, {x, kernel}));
  return {{conv, {x, kernel, bias}},
          {ops::ConvInputGrad{c.strides, c.padding, c.x, c.dilation, c.groups, {}}, {kernel, y}},
          {ops::ConvKernelGrad{c.strides, c.padding, c.kernel, true, c.dilation, c.groups, {}}, {x, y}}};
}

// Rows of zeros around an image [N, H, W, C].
Bytes padded(const Bytes& image, const Shape& shape, const ops::Padding& by) {
  const auto pixel = image.size() / static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
  const std::int64_t height = shape[1] + by[0].first + by[0].second, width = shape[2] + by[1].first + by[1].second;
  Bytes all(static_cast<std::size_t>(shape[0] * height * width) * pixel);
  for (std::int64_t row = 0; row < shape[0] * shape[1]; ++row) {
    const std::int64_t to = (row / shape[1] * height + row % shape[1] + by[0].first) * width + by[1].first;
    const auto from = static_cast<std::ptrdiff_t>(row * shape[2]), pixels = static_cast<std::ptrdiff_t>(pixel);
    std::copy_n(image.begin() + from * pixels, shape[2] * pixels, all.begin() + to * pixels);
  }
  return all;
}

Shape padded(Shape shape, const ops::Padding& by) {
  shape[1] += by[0].first + by[0].second;
  shape[2] += by[1].first + by[1].second;
  return shape;
}

// As an implicit matrix product computes it: the zeros around an image, or around a cotangent, are multiplied too.
std::vector<Bytes> by_implicit_product(const Convolution& c, KernelCase some) {
  Convolution whole = c;
  const bool is_input_grad = some.op.as<ops::ConvInputGrad>() != nullptr;
  const std::size_t image = is_input_grad ? 1 : 0;
  ops::Padding around = c.padding;
  whole.padding = {{0, 0}, {0, 0}};
  if (is_input_grad) {
    for (std::size_t i = 0; i < 2; ++i) {
      // So many pixels of dy more on either side are so many strides of padding more.
      const std::int64_t more = (c.kernel[i] - 1) * c.dilation[i];
      around[i] = {more, more};
      whole.padding[i] = {c.padding[i].first + more * c.strides[i], c.padding[i].second + more * c.strides[i]};
    }
  } else {
    whole.x = padded(c.x, around);
  }
  some.values[image] = padded(some.values[image], some.operands[image].shape, around);
  some.operands[image].shape = padded(some.operands[image].shape, around);
  const Three three = three_of(whole, some.operands[0].dtype);
  some.op = some.op.as<ops::Conv>() != nullptr ? three.forward.op
            : is_input_grad                    ? three.input_grad.op
                                               : three.kernel_grad.op;
  return run_reference(some);
}

// Some elements of a finite array, far apart, become this.
void plant(Bytes& values, DType dtype, float special) {
  dispatch(dtype, [&]<class T>() {
    if constexpr (FloatingElement<T>) {
      const T value = static_cast<T>(special);
      for (std::size_t at = 3 * sizeof(T); at < values.size(); at += 97 * sizeof(T)) {
        std::memcpy(values.data() + at, &value, sizeof(T));
      }
    }
  });
}

}  // namespace

TEST_CASE("a GPU's matrix products are the reference's, however they are transposed, with bias and relu",
          "[cuda][device][kernels][libraries]") {
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

TEST_CASE("a GPU's products of many rows, and of one column, have bias and relu",
          "[cuda][device][kernels][libraries]") {
  if (!has_gpus()) return;
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const ops::Matmul op{.relu = true};
    check_on_gpu({op, {array(dtype, {65536, 10}), array(dtype, {10, 10}), array(dtype, {10})}});
    check_on_gpu({op, {array(dtype, {37, 65}), array(dtype, {65, 1}), array(dtype, {1})}});
    check_on_gpu({op, {array(dtype, {37, 65}), array(dtype, {65, 8}), array(dtype, {8})}, 3, {true, true, true}});
  }
}

TEST_CASE("a GPU's products of bf16 are added up in f32, and only what is bf16 is rounded",
          "[cuda][device][kernels][libraries]") {
  if (!has_gpus()) return;
  const Type x = array(DType::bf16, {16, 256}), y = array(DType::bf16, {256, 8}), bias = array(DType::f32, {8});
  check_on_gpu({ops::Matmul{}, {x, y, bias}});
  check_on_gpu({ops::Matmul{.preferred_element_type = DType::f32}, {x, y}});
  check_on_gpu({ops::Matmul{.relu = true, .preferred_element_type = DType::f32}, {x, y, bias}});
}

TEST_CASE("a GPU's convolutions and their gradients are the reference's, with kernels of HWIO",
          "[cuda][device][kernels][libraries]") {
  if (!has_gpus()) return;
  for (const Convolution& c : convolutions) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      DYNAMIC_SECTION(name_of(c, dtype)) {
        for (const bool relu : {false, true}) {
          const KernelCase forward = three_of(c, dtype, relu).forward;
          check_stacked(forward.op, forward.operands, {true, false, false});
        }
        const Three three = three_of(c, dtype);
        check_stacked(three.input_grad.op, three.input_grad.operands, {false, true});
        for (const bool with_bias : {false, true}) {
          const ops::ConvKernelGrad op{c.strides, c.padding, c.kernel, with_bias, c.dilation, c.groups, {}};
          check_stacked(op, three.kernel_grad.operands, {true, true});
        }
      }
    }
  }
}

TEST_CASE("the gradient of a bias is the sum over many pixels, in parts of parts",
          "[cuda][device][kernels][libraries]") {
  if (!has_gpus()) return;
  const Type x = array(DType::f32, {8, 130, 128, 1}), y = array(DType::f32, {8, 130, 128, 3});
  check_on_gpu({ops::ConvKernelGrad{{1, 1}, {{0, 0}, {0, 0}}, {1, 1, 1, 3}, true, {1, 1}, 1, {}}, {x, y}});
}

TEST_CASE("a GPU's products and convolutions in TF32 are the reference's but for the rounding of operands to 11 bits",
          "[cuda][device][kernels][libraries]") {
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
  SECTION("a product") { check(ops::Matmul{}, {array(DType::f32, {64, 256}), array(DType::f32, {256, 32})}); }
  const Three three = three_of(convolutions[1], DType::f32);
  for (const KernelCase& c : {three.forward, three.input_grad, three.kernel_grad}) {
    DYNAMIC_SECTION(c.op.name()) { check(c.op, c.operands); }
  }
}

// Without padding and groups, so that a library multiplies what the references multiply. Zero times NaN or infinity is
// NaN in both.
TEST_CASE("a NaN or an infinity in a GPU's product or convolution reaches what it is multiplied into, through relu too",
          "[cuda][device][kernels][libraries]") {
  if (!has_gpus()) return;
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Convolution convolution{{3, 10, 9, 8}, {3, 2, 8, 16}, {1, 1}, {{0, 0}, {0, 0}}};
  for (const DType dtype : {DType::bf16, DType::f32}) {
    for (const float special : {nan, infinity}) {
      const auto check = [&](KernelCase c, std::size_t operand) {
        c.complete(5);
        plant(c.values[operand], dtype, special);
        const std::vector<Bytes> expected = run_reference(c);
        const std::vector<Bytes> finite = [&] {
          KernelCase without = c;
          without.values.clear();
          without.complete(5);
          return run_reference(without);
        }();
        CHECK(!beyond_rounding(c.results, finite, expected).empty());  // what is planted is seen
        check_on_gpu(c, expected);
      };
      for (const bool relu : {false, true}) {
        DYNAMIC_SECTION("the product of " << to_string(dtype) << ", " << special << ", relu " << relu) {
          const ops::Matmul op{.relu = relu};
          check({op, {array(dtype, {40, 64}), array(dtype, {64, 16}), array(dtype, {16})}}, 0);
          check({op, {array(dtype, {40, 64}), array(dtype, {64, 16}), array(dtype, {16})}}, 2);
        }
        DYNAMIC_SECTION("the convolution of " << to_string(dtype) << ", " << special << ", relu " << relu) {
          check(three_of(convolution, dtype, relu).forward, 0);
          check(three_of(convolution, dtype, relu).forward, 1);
        }
      }
      DYNAMIC_SECTION("the gradients of a convolution of " << to_string(dtype) << ", " << special) {
        // The edges of dx need dy alone to be special: a library pads dy.
        check(three_of(convolution, dtype).input_grad, 1);
        check(three_of(convolution, dtype).kernel_grad, 1);
      }
    }
  }
}

TEST_CASE("operands of libraries are such that a product with their padding changes nothing", "[cuda]") {
  const auto differs = [](const Convolution& c, KernelCase some, bool special) {
    if (special) {
      for (std::size_t i = 0; i < some.operands.size(); ++i) {
        some.values.push_back(
            random_values(some.operands[i].dtype, numel(some.operands[i]), static_cast<unsigned>(7 + i)));
      }
    }
    some.complete(7);
    return beyond_rounding(some.results, by_implicit_product(c, some), run_reference(some));
  };
  int found = 0;
  for (const Convolution& c : convolutions) {
    for (const DType dtype : {DType::bf16, DType::f32}) {
      INFO(name_of(c, dtype));
      const Three three = three_of(c, dtype);
      for (const KernelCase& some : {three.forward, three.input_grad, three.kernel_grad}) {
        INFO(some.op.name());
        CHECK(differs(c, some, false) == "");
        found += !differs(c, some, true).empty();
      }
    }
  }
  CHECK(found >= 12);  // with NaN among the operands
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
