// Maximum over the windows of an image (NHWC), and its gradient.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [N,H,W,C] -> [N,OH,OW,C], with sizes as for conv. Padding never wins. It is smaller than the window, so every
// window contains an element. If a window contains a NaN, its maximum is NaN, so that the guard detects it.
struct MaxPool {
  static constexpr std::string_view name = "max_pool";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;

  std::vector<std::int64_t> window = {2, 2};
  std::vector<std::int64_t> strides = {2, 2};
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{0, 0}, {0, 0}};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("window", window);
    visitor.field("strides", strides);
    visitor.field("padding", padding);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // A kernel of ours, because oneDNN's ignores NaNs in a window, which would hide them from the guard.
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// x, dy -> dx: each window's cotangent goes to its first maximum, row by row (rule 5). Cotangents of overlapping
// windows are added in the order of the windows. With `relu`, x is a result of relu and dx is the cotangent of relu's
// operand: windows whose maximum is not positive are ignored.
struct MaxPoolGrad {
  static constexpr std::string_view name = "max_pool_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool cpu_takes_bf16 = true;
  static constexpr NoDerivative derivative{"second derivatives of max pooling are not supported"};

  std::vector<std::int64_t> window = {2, 2};
  std::vector<std::int64_t> strides = {2, 2};
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{0, 0}, {0, 0}};
  bool relu = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("window", window);
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.flag("relu", relu);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // A kernel of ours, because oneDNN's needs a workspace from its forward primitive, which would have to run again, and
  // passes the cotangent of a NaN to another element.
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
