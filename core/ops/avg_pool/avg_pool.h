// Mean over the windows of an image (NHWC), and its gradient.
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

// x [N,H,W,C] -> [N,OH,OW,C], with sizes as for conv. With count_include_pad, padding counts as zeros; otherwise a
// window's sum is divided by the number of its elements on the image. Padding is smaller than the window.
struct AvgPool {
  static constexpr std::string_view name = "avg_pool";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;

  std::vector<std::int64_t> window = {2, 2};
  std::vector<std::int64_t> strides = {2, 2};
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{0, 0}, {0, 0}};
  bool count_include_pad = true;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("window", window);
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.field("count_include_pad", count_include_pad);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// dy -> dx of `input_shape`: the transpose of avg_pool. Each window's cotangent is divided equally among its elements.
// Cotangents of overlapping windows are added in the order of the windows.
struct AvgPoolGrad {
  static constexpr std::string_view name = "avg_pool_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;

  std::vector<std::int64_t> window = {2, 2};
  std::vector<std::int64_t> strides = {2, 2};
  std::vector<std::pair<std::int64_t, std::int64_t>> padding = {{0, 0}, {0, 0}};
  bool count_include_pad = true;
  Shape input_shape = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps}; }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("window", window);
    visitor.field("strides", strides);
    visitor.field("padding", padding);
    visitor.field("count_include_pad", count_include_pad);
    visitor.field("input_shape", input_shape);
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

}  // namespace pmaptrain::ops
