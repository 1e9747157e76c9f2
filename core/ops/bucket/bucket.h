// Many arrays as one of one dimension, a bucket, and back. core/graph/bucket.h defines where each array lies.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// One or more arrays of one element type -> a bucket that contains them. The elements in no array are zero. The bucket
// is the smallest one, or has `elements` elements.
struct Pack {
  static constexpr std::string_view name = "pack";
  static constexpr bool local = true;
  static constexpr bool packs = true;
  static constexpr UseReference cpu{"it only copies memory"};
  static constexpr WholeRows row_rule{"the result has no rows"};

  std::int64_t elements = 0;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& visitor) { visitor.seldom("elements", elements, std::int64_t{0}); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

// A bucket -> the arrays of these shapes that it contains.
// Backends carry it out without a copy where the bucket has one instance.
struct Unpack {
  static constexpr std::string_view name = "unpack";
  static constexpr bool local = true;
  static constexpr bool unpacks = true;
  static constexpr UseReference cpu{"it only copies memory"};
  static constexpr WholeRows row_rule{"the operand has no rows"};

  std::vector<Shape> shapes = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  void attributes(AttributeVisitor& visitor) { visitor.field("shapes", shapes); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
