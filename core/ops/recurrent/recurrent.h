// The recurrences of an LSTM and of a GRU over the positions of sequences, and their gradients. Each op has the
// products with the state; those of the inputs are a matmul before it. Memory is linear in the number of positions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::ops {

// x [B,T,4F], kernel [F,4F] -> out [B,T,F], cells [B,T,F], gates [B,T,4F], all of one floating type. The columns of x,
// of the kernel and of gates are those of i, f, g and o, F each. With a = x + h kernel of a position, where h and c are
// out and cells of the position before it, and zero at the first one, without a product:
//
//   i = sigmoid(a_i), f = sigmoid(a_f), g = tanh(a_g), o = sigmoid(a_o); cells = f c + i g; out = o tanh(cells)
//
// With `reverse`, the position before is the one behind it, and the first one the last. Only `out` has a gradient.
struct Lstm {
  static constexpr std::string_view name = "lstm";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool multiplies_in_turn = true;
  static constexpr std::int64_t gates = 4;  // columns of x and of the kernel, by features

  bool reverse = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps, 0b10}; }
  void attributes(AttributeVisitor& visitor) { visitor.flag("reverse", reverse); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  // A kernel of ours: the library's has layouts of its own, and gives no gates.
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  std::optional<std::size_t> prepared_operand() const { return 1; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// The transposed kernel [4F,F], cells, gates, dout -> dx, which is also the cotangent of h kernel.
struct LstmGrad {
  static constexpr std::string_view name = "lstm_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool multiplies_in_turn = true;
  static constexpr NoDerivative derivative{"second derivatives of lstm are not supported"};

  bool reverse = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps, 0b1}; }
  void attributes(AttributeVisitor& visitor) { visitor.flag("reverse", reverse); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  std::optional<std::size_t> prepared_operand() const { return 0; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// x [B,T,3F], kernel [F,3F], bias [F] -> out [B,T,F], gates [B,T,4F], all of one floating type. The columns of x and of
// the kernel are those of r, z and n; those of gates of r, z, n and p. With h as in lstm:
//
//   r = sigmoid(x_r + h kernel_r), z = sigmoid(x_z + h kernel_z), p = h kernel_n + bias, n = tanh(x_n + r p);
//   out = (1 - z) n + z h
struct Gru {
  static constexpr std::string_view name = "gru";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool multiplies_in_turn = true;
  static constexpr std::int64_t gates = 3;

  bool reverse = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  Cotangents derivative(VjpContext& context) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps, 0b110}; }
  void attributes(AttributeVisitor& visitor) { visitor.flag("reverse", reverse); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  std::optional<std::size_t> prepared_operand() const { return 1; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// The transposed kernel [3F,F], out, gates, dout -> dx [B,T,3F], and the cotangent of h kernel + bias [B,T,3F].
struct GruGrad {
  static constexpr std::string_view name = "gru_grad";
  static constexpr bool local = true;
  static constexpr bool in_f32 = true;
  static constexpr bool multiplies_in_turn = true;
  static constexpr NoDerivative derivative{"second derivatives of gru are not supported"};

  bool reverse = false;

  std::vector<Type> infer(const InferContext& context) const;
  Cost cost(const Mesh& mesh, std::span<const Type> operands, std::span<const Type> results) const;
  RowRule row_rule(std::span<const Type>, std::span<const Type>) const { return {RowRule::Kind::keeps, 0b1}; }
  void attributes(AttributeVisitor& visitor) { visitor.flag("reverse", reverse); }
  void reference(const ReferenceCall& call) const;
  GpuKernel gpu(const GpuRequest& request) const;
  std::unique_ptr<CpuKernel> cpu(const CpuRequest& request) const;
  std::optional<std::size_t> prepared_operand() const { return 0; }
  std::unique_ptr<CpuPreparation> prepare(const CpuRequest& request) const;
};

// What all four share: examples, positions and features, of an array [B,T,F].
struct RecurrentSizes {
  std::int64_t examples, positions, features;

  // Of an array [B,T,...] of `columns` columns for each feature.
  RecurrentSizes(const Shape& shape, std::int64_t columns)
      : examples(shape[0]), positions(shape[1]), features(shape[2] / columns) {}
  // The number of the row of an example at a position.
  std::int64_t row(std::int64_t example, std::int64_t position) const { return example * positions + position; }
};

}  // namespace pmaptrain::ops
