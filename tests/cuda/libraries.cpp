// Matrix products and convolutions, which libraries carry out on CUDA, against the references.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/base/bf16.h"
#include "core/ops/all.h"
#include "core/ops/matmul/matmul.h"
#include "tests/catch.h"
#include "tests/cuda/library_cases.h"
#include "tests/cuda/on_gpu.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

Type array(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

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

template <class To, class From>
Bytes converted(const Bytes& values) {
  std::vector<From> from(values.size() / sizeof(From));
  std::memcpy(from.data(), values.data(), values.size());
  std::vector<To> to;
  for (const From value : from) to.push_back(static_cast<To>(value));
  return bytes_of(to);
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

DEVICE_TEST_CASE("a GPU's products, convolutions and their gradients are the reference's up to rounding",
                 "[cuda][kernels][libraries]") {
  for (const NamedCases& some : product_and_convolution_cases()) {
    DYNAMIC_SECTION(some.name) {
      for (const KernelCase& c : some.cases) check_on_gpu(c);
    }
  }
}

// Where the reference's sum is near the middle between two numbers of bf16, another order of its terms gives the other
// one. So the gradient is compared as bf16, and that it has no more digits is shown apart.
DEVICE_TEST_CASE(
    "a GPU's convolutions of bf16 have a bias of f32, and gradients in f32 which are sums rounded to bf16 once",
    "[cuda][kernels][libraries]") {
  for (const NamedCases& some : mixed_convolution_cases()) {
    for (KernelCase c : some.cases) {
      c.complete(7);
      if (c.op.as<ops::ConvKernelGrad>() == nullptr) {
        check_on_gpu(c);
        continue;
      }
      run_apart(to_string(c), [&] {
        const std::vector<Bytes> found = run_on_gpu(c), expected = run_reference(c);
        CHECK(beyond_rounding({c.results[1]}, {found[1]}, {expected[1]}) == "");
        const Bytes found_bf16 = converted<bf16, float>(found[0]), expected_bf16 = converted<bf16, float>(expected[0]);
        CHECK(beyond_rounding({array(DType::bf16, c.results[0].shape)}, {found_bf16}, {expected_bf16}) == "");
        CHECK((converted<float, bf16>(found_bf16) == found[0]));
      });
    }
  }
}

// 1 + 2^-8 lies in the middle between two numbers of bf16 and is rounded to 1, as that is even. The least that is added
// to it would make it the next number.
DEVICE_TEST_CASE("a GPU rounds a bias of f32 to bf16 before it is added to a product or a convolution that gives bf16",
                 "[cuda][kernels][libraries]") {
  const float bias = std::ldexp(1.0F, -8) + std::ldexp(1.0F, -17);
  const auto check = [&](const Op& op, const Shape& x, const Shape& kernel, std::int64_t devices) {
    KernelCase c{op,
                 {array(DType::bf16, x), array(DType::bf16, kernel), array(DType::f32, {kernel.back()})},
                 devices,
                 {true, false, false}};
    const auto of = [](std::int64_t count, auto value) {
      return bytes_of(std::vector(static_cast<std::size_t>(count), value));
    };
    c.values = {of(numel(x) * devices, bf16(1.0F)), of(numel(kernel), bf16(1.0F / 16)), of(kernel.back(), bias)};
    c.complete(7);
    run_apart(to_string(c), [&] { CHECK((run_on_gpu(c)[0] == of(numel(c.results[0]) * devices, bf16(1.0F)))); });
  };
  for (const bool relu : {false, true}) {
    for (const std::int64_t devices : {1, 3}) {
      check(ops::Matmul{.relu = relu}, {32, 16}, {16, 64}, devices);
      check(ops::Conv{{1, 1}, {{0, 0}, {0, 0}}, relu, {1, 1}, 1, {}}, {2, 8, 8, 16}, {1, 1, 16, 32}, devices);
    }
  }
}

DEVICE_TEST_CASE(
    "a GPU's products and convolutions in TF32 are the reference's but for the rounding of operands to 11 bits",
    "[cuda][kernels][libraries]") {
  const auto check = [](KernelCase c) {
    for (const Type& type : c.operands) {
      std::vector<float> values(static_cast<std::size_t>(numel(type)));
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = std::sin(static_cast<float>(7 * i + c.operands.size()));
      }
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
    INFO(c.op.name() << ": " << furthest << " of " << largest);
    CHECK(largest > 0.5F);
    CHECK(furthest <= 0.004F * largest);
  };
  for (const NamedCases& some : tf32_cases()) {
    for (const KernelCase& c : some.cases) {
      run_apart(to_string(c), [&] { check(c); });
    }
  }
}

// Zero times NaN or infinity is NaN in both.
DEVICE_TEST_CASE(
    "a NaN or an infinity in a GPU's product or convolution reaches what it is multiplied into, through relu too",
    "[cuda][kernels][libraries]") {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
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
          check(product_of_special_values(dtype, relu), 0);
          check(product_of_special_values(dtype, relu), 2);
        }
        DYNAMIC_SECTION("the convolution of " << to_string(dtype) << ", " << special << ", relu " << relu) {
          check(convolution_of_special_values(dtype, relu).forward, 0);
          check(convolution_of_special_values(dtype, relu).forward, 1);
        }
      }
      DYNAMIC_SECTION("the gradients of a convolution of " << to_string(dtype) << ", " << special) {
        // The edges of dx need dy alone to be special: a library pads dy.
        check(convolution_of_special_values(dtype, false).input_grad, 1);
        check(convolution_of_special_values(dtype, false).kernel_grad, 1);
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
  for (const Convolution& c : convolutions()) {
    if (c.x.size() > 4) continue;  // the product is that of images
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
