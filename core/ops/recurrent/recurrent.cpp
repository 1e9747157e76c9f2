#include "core/ops/recurrent/recurrent.h"

#include <fmt/format.h>

#include <utility>

#include "core/graph/builder.h"
#include "core/ops/conv/window.h"
#include "core/ops/matmul/matmul.h"
#include "core/ops/pad/pad.h"
#include "core/ops/reduce/reduce.h"
#include "core/ops/slice/slice.h"
#include "core/ops/support/rules.h"
#include "core/ops/transpose/transpose.h"

namespace pmaptrain::ops {
namespace {

// Checks an operand whose shape follows from that of another one.
void expect_shape(std::string_view op, std::pair<std::string_view, const Type*> given, std::string_view what,
                  const Type& found, const Type& wanted) {
  if (found.dtype == wanted.dtype && found.shape == wanted.shape) return;
  throw TypeError(
      6, fmt::format("{}: {} is {}, but {} is {}", op, given.first, describe(*given.second), what, describe(found)),
      fmt::format("with this {}, {} is {}", given.first, what, describe(wanted)));
}

// The sizes of an array of sequences. `columns`: of one feature.
RecurrentSizes expect_sequences(std::string_view op, std::string_view what, const Type& x, std::int64_t columns) {
  if (x.shape.size() != 3 || x.shape[1] == 0 || x.shape[2] == 0 || x.shape[2] % columns != 0) {
    throw TypeError(6, fmt::format("{}: {} is {}", op, what, describe(x)),
                    fmt::format("it has three dimensions: examples, positions, at least one, and features{}",
                                columns == 1 ? "" : fmt::format(", of which each has {} columns", columns)));
  }
  return {x.shape, columns};
}

Type sequences(const Type& like, const RecurrentSizes& sizes, std::int64_t columns) {
  return {like.dtype, {sizes.examples, sizes.positions, columns * sizes.features}, {}};
}

// A product of each position but the first with a matrix of `gates` columns for each feature, and about as many other
// operations as an LSTM has.
double operations(const RecurrentSizes& sizes, std::int64_t gates) {
  constexpr double of_cell = 60;
  const auto features = static_cast<double>(sizes.features);
  const auto positions = static_cast<double>(sizes.positions);
  const double products = 2 * features * features * static_cast<double>(gates) * (positions - 1);
  return static_cast<double>(sizes.examples) * (products + of_cell * positions * features);
}

// [B,T,F]: what x has at the position before, and zeros at the first one.
Value of_position_before(Builder& b, Value x, bool reverse) {
  const Shape shape = b.type(x).shape;
  Slice others{{0, 0, 0}, shape};
  Pad zeros{{0, 0, 0}, {0, 0, 0}};
  if (reverse) {
    others.starts[1] = zeros.high[1] = 1;
  } else {
    others.limits[1] = shape[1] - 1;
    zeros.low[1] = 1;
  }
  return b.emit(zeros, {b.emit(others, {x})});
}

Value transposed(Builder& b, Value matrix) { return b.emit(Transpose{{1, 0}}, {matrix}); }

// Refuses cotangents of all results but the first.
void expect_first_alone(std::string_view op, const VjpContext& context) {
  for (std::size_t i = 1; i < context.cotangents.size(); ++i) {
    if (!context.cotangents[i]) continue;
    throw TypeError(6, fmt::format("{}: a gradient of its result {}", op, i),
                    "only out, the first result, has one; the others are for the backward pass");
  }
}

}  // namespace

std::vector<Type> Lstm::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x", "kernel"};
  expect_floating(name, context.operands, names);
  const Type& x = context.operands[0];
  const RecurrentSizes sizes = expect_sequences(name, names[0], x, gates);
  expect_shape(name, {"x", &x}, names[1], context.operands[1], {x.dtype, {sizes.features, gates * sizes.features}, {}});
  return {sequences(x, sizes, 1), sequences(x, sizes, 1), sequences(x, sizes, 4)};
}

std::vector<Type> LstmGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"the transposed kernel", "cells", "gates", "dout"};
  expect_floating(name, context.operands, names);
  const Type& cells = context.operands[1];
  const RecurrentSizes sizes = expect_sequences(name, names[1], cells, 1);
  const std::pair<std::string_view, const Type*> given{names[1], &cells};
  expect_shape(name, given, names[0], context.operands[0],
               {cells.dtype, {Lstm::gates * sizes.features, sizes.features}, {}});
  expect_shape(name, given, names[2], context.operands[2], sequences(cells, sizes, 4));
  expect_shape(name, given, names[3], context.operands[3], sequences(cells, sizes, 1));
  return {sequences(cells, sizes, Lstm::gates)};
}

std::vector<Type> Gru::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"x", "kernel", "bias"};
  expect_floating(name, context.operands, names);
  const Type& x = context.operands[0];
  const RecurrentSizes sizes = expect_sequences(name, names[0], x, gates);
  expect_shape(name, {"x", &x}, names[1], context.operands[1], {x.dtype, {sizes.features, gates * sizes.features}, {}});
  expect_shape(name, {"x", &x}, names[2], context.operands[2], {x.dtype, {sizes.features}, {}});
  return {sequences(x, sizes, 1), sequences(x, sizes, 4)};
}

std::vector<Type> GruGrad::infer(const InferContext& context) const {
  static constexpr std::string_view names[] = {"the transposed kernel", "out", "gates", "dout"};
  expect_floating(name, context.operands, names);
  const Type& out = context.operands[1];
  const RecurrentSizes sizes = expect_sequences(name, names[1], out, 1);
  const std::pair<std::string_view, const Type*> given{names[1], &out};
  expect_shape(name, given, names[0], context.operands[0],
               {out.dtype, {Gru::gates * sizes.features, sizes.features}, {}});
  expect_shape(name, given, names[2], context.operands[2], sequences(out, sizes, 4));
  expect_shape(name, given, names[3], context.operands[3], sequences(out, sizes, 1));
  return {sequences(out, sizes, Gru::gates), sequences(out, sizes, Gru::gates)};
}

Cost Lstm::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, operations({operands[0].shape, gates}, gates));
}

Cost LstmGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, operations({operands[1].shape, 1}, Lstm::gates));
}

Cost Gru::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, operations({operands[0].shape, gates}, gates));
}

Cost GruGrad::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results, operations({operands[1].shape, 1}, Gru::gates));
}

// The gradient of the kernel is one product over all examples and positions, of the states before and the cotangents.
Cotangents Lstm::derivative(VjpContext& context) const {
  expect_first_alone(name, context);
  Cotangents result(context.operands.size());
  if (!context.cotangents[0]) return result;
  Builder& b = context.b;
  const Value kernel = transposed(b, context.operands[1]);
  const Value dx = b.emit(LstmGrad{reverse}, {kernel, context.results[1], context.results[2], *context.cotangents[0]});
  if (context.needed[0]) result[0] = dx;
  if (context.needed[1]) {
    result[1] = b.emit(Matmul{true, false}, {of_position_before(b, context.results[0], reverse), dx});
  }
  return result;
}

Cotangents Gru::derivative(VjpContext& context) const {
  expect_first_alone(name, context);
  Cotangents result(context.operands.size());
  if (!context.cotangents[0]) return result;
  Builder& b = context.b;
  const Value out = context.results[0], kernel = transposed(b, context.operands[1]);
  const std::vector<Value> both =
      b.emit_all(GruGrad{reverse}, std::vector{kernel, out, context.results[1], *context.cotangents[0]});
  if (context.needed[0]) result[0] = both[0];
  if (context.needed[1]) result[1] = b.emit(Matmul{true, false}, {of_position_before(b, out, reverse), both[1]});
  if (context.needed[2]) {
    const Type of_out = b.type(out);
    const std::int64_t features = of_out.shape[2];
    const Shape end{of_out.shape[0], of_out.shape[1], gates * features};
    const Value of_n = b.emit(Slice{{0, 0, (gates - 1) * features}, end}, {both[1]});
    result[2] = sum_as(b, b.type(context.operands[2]).dtype, of_n, {0, 1});
  }
  return result;
}

}  // namespace pmaptrain::ops
