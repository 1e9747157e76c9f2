#include "core/ops/conv/conv.h"

#include <fmt/format.h>

#include <numeric>

#include "core/graph/builder.h"
#include "core/ops/broadcast/broadcast.h"
#include "core/ops/cast/cast.h"
#include "core/ops/conv/geometry.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/support/epilogue.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

using pmaptrain::to_string;

void expect_cotangent(std::string_view op, const ConvGeometry& geometry, const Shape& dy) {
  if (dy == geometry.y_shape()) return;
  throw TypeError(6,
                  fmt::format("{}: x {} and kernel {} give {}, but dy is {}", op, to_string(geometry.x_shape()),
                              to_string(geometry.kernel_shape()), to_string(geometry.y_shape()), to_string(dy)),
                  "dy has the shape of the convolution's result");
}

// All dimensions but the channels.
std::vector<std::int64_t> pixels_of(const Type& type) {
  std::vector<std::int64_t> dimensions(type.shape.size() - 1);
  std::iota(dimensions.begin(), dimensions.end(), 0);
  return dimensions;
}

// The three ops do the same work: each multiplies every tap with every cotangent.
Cost cost_of(const ConvGeometry& geometry, std::span<const Type> operands, std::span<const Type> results) {
  Cost cost;
  cost.flops = geometry.flops();
  for (const Type& type : operands) cost.bytes += static_cast<double>(bytes(type));
  for (const Type& type : results) cost.bytes += static_cast<double>(bytes(type));
  return cost;
}

}  // namespace

double ConvGeometry::flops() const {
  return 2.0 * static_cast<double>(n) * static_cast<double>(c_of_group()) * static_cast<double>(o) * d.taps() *
         h.taps() * w.taps();
}

ConvGeometry conv_geometry(std::string_view op, const Shape& x, const Shape& kernel,
                           std::span<const std::int64_t> strides, const Padding& padding,
                           std::span<const std::int64_t> dilation, std::int64_t groups) {
  const bool is_volume = x.size() == 5;
  if ((x.size() != 4 && !is_volume) || kernel.size() != x.size()) {
    throw TypeError(6, fmt::format("{} of x {} and kernel {}", op, to_string(x), to_string(kernel)),
                    "x is [examples, height, width, channels] and a kernel is [height, width, channels in, channels "
                    "out]; of volumes both have a depth before the height");
  }
  const Windows windows = slide(op, x, std::span(kernel).first(kernel.size() - 2), strides, padding, dilation);
  const std::int64_t c = x.back(), o = kernel.back(), c_of_kernel = kernel[kernel.size() - 2];
  if (groups < 1 || c % groups != 0 || o % groups != 0) {
    throw TypeError(6, fmt::format("{}: x {} and kernel {} in {} groups", op, to_string(x), to_string(kernel), groups),
                    "the channels of x and those of the result divide over the groups");
  }
  if (c / groups != c_of_kernel) {
    Shape fitting = kernel;
    fitting[kernel.size() - 2] = c / groups;
    throw TypeError(
        6,
        fmt::format("{}: x {} has {} channels{}, but kernel {} takes {}", op, to_string(x), c,
                    groups == 1 ? "" : fmt::format(" in {} groups", groups), to_string(kernel), c_of_kernel),
        fmt::format("make the kernel {}", to_string(fitting)));
  }
  return {.n = x[0],
          .c = c,
          .o = o,
          .is_volume = is_volume,
          .d = windows[0],
          .h = windows[1],
          .w = windows[2],
          .groups = groups};
}

std::vector<Type> Conv::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x", "kernel"};
  const auto operands = context.operands;
  const bool with_bias = operands.size() == 3;
  expect_floating(name, with_bias ? operands.first(2) : operands, names);
  const ConvGeometry geometry =
      conv_geometry(name, operands[0].shape, operands[1].shape, strides, padding, dilation, groups);
  if (with_bias) expect_bias(name, operands[2], operands[0].dtype, geometry.o);
  return {{result_dtype(name, operands[0].dtype, preferred_element_type), geometry.y_shape(), {}}};
}

std::vector<Type> ConvInputGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"kernel", "dy"};
  const auto operands = context.operands;
  expect_floating(name, operands, names);
  const ConvGeometry geometry = conv_geometry(name, input_shape, operands[0].shape, strides, padding, dilation, groups);
  expect_cotangent(name, geometry, operands[1].shape);
  return {{result_dtype(name, operands[0].dtype, preferred_element_type), input_shape, {}}};
}

std::vector<Type> ConvKernelGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x", "dy"};
  const auto operands = context.operands;
  expect_floating(name, operands, names);
  const ConvGeometry geometry =
      conv_geometry(name, operands[0].shape, kernel_shape, strides, padding, dilation, groups);
  expect_cotangent(name, geometry, operands[1].shape);
  const DType dtype = result_dtype(name, operands[0].dtype, preferred_element_type);
  std::vector<Type> results = {{dtype, kernel_shape, {}}};
  if (bias) results.push_back({dtype, {geometry.o}, {}});
  return results;
}

Cost Conv::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return cost_of(conv_geometry(name, operands[0].shape, operands[1].shape, strides, padding, dilation, groups),
                 operands, results);
}

Cost ConvInputGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return cost_of(conv_geometry(name, results[0].shape, operands[0].shape, strides, padding, dilation, groups), operands,
                 results);
}

Cost ConvKernelGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return cost_of(conv_geometry(name, operands[0].shape, kernel_shape, strides, padding, dilation, groups), operands,
                 results);
}

Cotangents Conv::derivative(VjpContext& context) const {
  Cotangents result(context.operands.size());
  if (!context.cotangents[0]) return result;
  Builder& b = context.b;
  const Value x = context.operands[0], kernel = context.operands[1];
  const Value dy_of_result = relu ? relu_cotangent(context) : *context.cotangents[0];
  const Value dy = as_dtype(b, b.type(x).dtype, dy_of_result);
  const bool bias = result.size() == 3 && context.needed[2];
  if (context.needed[0]) {
    result[0] = b.emit(ConvInputGrad{strides, padding, b.type(x).shape, dilation, groups}, {kernel, dy});
  }
  if (context.needed[1]) {
    const Value operands[] = {x, dy};
    ConvKernelGrad gradient{strides, padding, b.type(kernel).shape, bias, dilation, groups};
    // A bf16 kernel may have an f32 bias; then both gradients get the type f32.
    if (bias && b.type(context.operands[2]).dtype != b.type(x).dtype) gradient.preferred_element_type = DType::f32;
    const std::vector<Value> sums = b.emit_all(gradient, operands);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      result[i + 1] = as_dtype(b, b.type(context.operands[i + 1]).dtype, sums[i]);
    }
  } else if (bias) {
    result[2] = sum_as(b, b.type(context.operands[2]).dtype, dy_of_result, pixels_of(b.type(x)));
  }
  return result;
}

Cotangents ConvInputGrad::derivative(VjpContext& context) const {
  Cotangents result(2);
  if (!context.cotangents[0]) return result;
  const Value kernel = context.operands[0], dy = context.operands[1];
  const Value g = as_dtype(context.b, context.b.type(kernel).dtype, *context.cotangents[0]);
  if (context.needed[0]) {
    result[0] = context.b.emit(ConvKernelGrad{strides, padding, context.b.type(kernel).shape, false, dilation, groups},
                               {g, dy});
  }
  if (context.needed[1]) result[1] = context.b.emit(Conv{strides, padding, false, dilation, groups}, {g, kernel});
  return result;
}

// The sum over dy's pixels is the transpose of adding a bias to each pixel.
Cotangents ConvKernelGrad::derivative(VjpContext& context) const {
  Cotangents result(2);
  Builder& b = context.b;
  const Value x = context.operands[0], dy = context.operands[1];
  const auto cotangent = [&](std::size_t i) -> std::optional<Value> {
    if (i >= context.cotangents.size() || !context.cotangents[i]) return std::nullopt;
    return as_dtype(b, b.type(x).dtype, *context.cotangents[i]);
  };
  const std::optional<Value> g = cotangent(0), g_bias = cotangent(1);
  if (context.needed[0] && g) {
    result[0] = b.emit(ConvInputGrad{strides, padding, b.type(x).shape, dilation, groups}, {*g, dy});
  }
  if (!context.needed[1]) return result;
  if (g && g_bias) {
    result[1] = b.emit(Conv{strides, padding, false, dilation, groups}, {x, *g, *g_bias});
  } else if (g) {
    result[1] = b.emit(Conv{strides, padding, false, dilation, groups}, {x, *g});
  } else if (g_bias) {
    result[1] = b.emit(Broadcast{b.type(dy).shape, {std::ssize(b.type(dy).shape) - 1}}, {*g_bias});
  }
  return result;
}

}  // namespace pmaptrain::ops
