// Convolution (cross-correlation, as in every framework) of images or volumes, and its two gradients. Images are NHWC,
// kernels HWIO; volumes are NDHWC, kernels DHWIO. Apart from `relu`, each of the three ops is bilinear in two of image,
// kernel and cotangent, and they are each other's derivatives, so derivatives of any order can be expressed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

using Padding = std::vector<std::pair<std::int64_t, std::int64_t>>;

// x [N,H,W,C], kernel [KH,KW,C/groups,O] -> y [N,OH,OW,O], where OH = (H + low + high - extent) / stride + 1, rounded
// down, and extent = (KH - 1) · dilation + 1. `strides`, `padding` and `dilation` are for height and width; of volumes
// there is a depth D before the height in all of these. Padding adds zeros before and after; the kernel's elements are
// `dilation` apart on the image. With several `groups`, input and output channels are divided into equal groups, and
// each group of outputs depends on one group of inputs. A third operand, the bias [O], is added to each pixel of y.
// With `relu`, the op relu is then applied. A NaN is kept, but a sum that overflowed to -inf may become NaN rather than
// 0. Elements of bf16 are accumulated as in matmul, also in the gradients.
struct Conv {
  static constexpr std::string_view name = "conv";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  std::vector<std::int64_t> strides = {1, 1};
  Padding padding = {{0, 0}, {0, 0}};
  bool relu = false;
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return {RowRule::Kind::keeps, 0b110};  // the kernel and the bias
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.seldom("dilation", dilation, {1, 1});
    visitor.seldom("groups", groups, {1});
    visitor.flag("relu", relu);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  // The kernel: the library reads it in blocks of channels.
  std::optional<std::size_t> prepared_operand() const { return 1; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// kernel, dy -> dx of `input_shape`: the transpose of conv in x. The shape is an attribute because with a stride
// several input sizes give the same dy.
struct ConvInputGrad {
  static constexpr std::string_view name = "conv_input_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  std::vector<std::int64_t> strides = {1, 1};
  Padding padding = {{0, 0}, {0, 0}};
  Shape input_shape = {};
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return {RowRule::Kind::keeps, 0b01};  // the kernel
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.seldom("dilation", dilation, {1, 1});
    visitor.seldom("groups", groups, {1});
    visitor.field("input_shape", input_shape);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  // The kernel: the library reads it in blocks of channels.
  std::optional<std::size_t> prepared_operand() const { return 0; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// x, dy -> dkernel of `kernel_shape`: the transpose of conv in its kernel. Sums over the examples. With `bias` there is
// a second result [O], the sum of dy over its pixels: the gradient of conv's bias. Kernels take the
// shape from the types of a call, because a backend may compute some output channels at a time.
struct ConvKernelGrad {
  static constexpr std::string_view name = "conv_kernel_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  std::vector<std::int64_t> strides = {1, 1};
  Padding padding = {{0, 0}, {0, 0}};
  Shape kernel_shape = {};
  bool bias = false;
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;
  std::optional<DType> preferred_element_type = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  // The output channels of a kernel are independent of each other.
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const {
    return {RowRule::Kind::sums, 0, bias || groups > 1 ? RowRule::Parts::none : RowRule::Parts::columns};
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.seldom("dilation", dilation, {1, 1});
    visitor.seldom("groups", groups, {1});
    visitor.field("kernel_shape", kernel_shape);
    visitor.flag("bias", bias);
    visitor.seldom("preferred_element_type", preferred_element_type);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
