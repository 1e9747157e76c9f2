// Random values without hidden state. An element depends only on the key, the number of its row and its index in the
// row, not on the batch, the microbatch or the mesh.
//
// Words come from Philox with the counter (low half of the row, high half of the row, index, 0).
//
// A device that has a part of the elements of a row draws what an undivided model draws for them: the index of the
// element (i_0, i_1, ...) is then offset + Σ i_d · strides[d], where offset is an optional operand, i32[] or i64[], and
// `strides` are those of the undivided array of a row, in elements. Without strides they are those of `shape`, and
// without an offset it is 0. An index counts modulo 2^32. random_permutation has no parts: each of its elements depends
// on all exchanges, so a device would draw the whole row and take its part by a slice.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// Of the operands all but `rows` are the same for all rows.
constexpr RowRule keeps_rows_of_stream(std::size_t operands) {
  return {RowRule::Kind::keeps, operands > 2 ? 0b101U : 0b001U};
}

// operands: key u32[2], rows i64[B], optionally offset -> f32[B, shape...]. Uniform in [0, 1), in multiples of 2^-24,
// from the first word.
struct RandomUniform {
  static constexpr std::string_view name = "random_uniform";
  static constexpr bool local = true;
  static constexpr NoDerivative derivative{"it is a function of integers"};

  Shape shape = {};
  std::vector<std::int64_t> strides = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_of_stream(operands.size());
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("shape", shape);
    visitor.seldom("strides", strides, {});
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// operands: key u32[2], rows i64[B], optionally offset -> f32[B, shape...]. Standard normal: normal_from_bits of the
// first two words.
struct RandomNormal {
  static constexpr std::string_view name = "random_normal";
  static constexpr bool local = true;
  static constexpr NoDerivative derivative{"it is a function of integers"};

  Shape shape = {};
  std::vector<std::int64_t> strides = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_of_stream(operands.size());
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("shape", shape);
    visitor.seldom("strides", strides, {});
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// operands: key u32[2], rows i64[B], optionally offset -> bool [B, shape...]. True if the value of random_uniform is
// below `probability`.
struct RandomBernoulli {
  static constexpr std::string_view name = "random_bernoulli";
  static constexpr bool local = true;
  static constexpr NoDerivative derivative{"it is a function of integers"};

  Shape shape = {};
  double probability = 0.5;
  std::vector<std::int64_t> strides = {};

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_of_stream(operands.size());
  }
  void attributes(AttributeVisitor& visitor) {
    visitor.field("shape", shape);
    visitor.field("probability", probability);
    visitor.seldom("strides", strides, {});
  }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
};

// operands: key u32[2], rows i64[B] -> i32 [B, size]. Each row is a random permutation of 0 to size - 1: for e = 1 to
// size - 1, element e is exchanged with element w · (e + 1) / 2^32, rounded down, where w is the first word of element
// e.
struct RandomPermutation {
  static constexpr std::string_view name = "random_permutation";
  static constexpr bool local = true;
  static constexpr UseReference cpu{"each exchange depends on the one before it"};
  static constexpr NoDerivative derivative{"it is a function of integers"};

  std::int64_t size = 1;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type> operands, std::span<const Type>) const {
    return keeps_rows_of_stream(operands.size());
  }
  void attributes(AttributeVisitor& visitor) { visitor.field("size", size); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
};

}  // namespace pmaptrain::ops
