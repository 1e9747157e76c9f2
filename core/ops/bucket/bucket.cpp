#include "core/ops/bucket/bucket.h"

#include <fmt/format.h>

#include <cstring>

#include "core/graph/bucket.h"
#include "core/ops/support/rules.h"

namespace pmaptrain::ops {
namespace {

std::size_t bytes_at(std::int64_t offset, DType dtype) { return static_cast<std::size_t>(offset) * size_of(dtype); }

}  // namespace

std::vector<Type> Pack::infer(const InferContext& context) const {
  if (context.operands.empty()) throw TypeError(6, fmt::format("{}: of nothing", name), "it takes one operand or more");
  const DType dtype = context.operands[0].dtype;
  for (const Type& operand : context.operands) {
    if (operand.dtype == dtype) continue;
    throw TypeError(6,
                    fmt::format("{}: {} does not go with {}", name, describe(operand), describe(context.operands[0])),
                    "the arrays of a bucket have one element type; cast them first");
  }
  const std::int64_t least = offsets_in_bucket(context.operands).back();
  if (elements != 0 && (elements < least || elements % bucket_unit != 0)) {
    throw TypeError(6, fmt::format("{}: elements={} is no size of a bucket of these operands", name, elements),
                    fmt::format("it is a multiple of {}, at least {}", bucket_unit, least));
  }
  return one_result(dtype, {elements != 0 ? elements : least});
}

Cost Pack::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

Cotangents Pack::derivative(VjpContext& context) const {
  Unpack unpack;
  for (const Value operand : context.operands) unpack.shapes.push_back(context.b.type(operand).shape);
  const std::vector<Value> parts = context.b.emit_all(unpack, std::vector{*context.cotangents[0]});
  return {parts.begin(), parts.end()};
}

void Pack::reference(const ReferenceCall& call) const {
  std::vector<Shape> shapes;
  for (const ConstArray& operand : call.operands) shapes.push_back(operand.shape());
  const std::vector<std::int64_t> offsets = offsets_in_bucket(shapes);
  std::byte* const bucket = call.results[0].data;
  const DType dtype = call.results[0].dtype();
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    const std::size_t size = bytes(*call.operands[i].type), begin = bytes_at(offsets[i], dtype);
    if (size > 0) std::memcpy(bucket + begin, call.operands[i].data, size);
    std::memset(bucket + begin + size, 0, bytes_at(offsets[i + 1], dtype) - begin - size);
  }
  const std::size_t end = bytes_at(offsets.back(), dtype);
  std::memset(bucket + end, 0, bytes(*call.results[0].type) - end);
}

std::vector<Type> Unpack::infer(const InferContext& context) const {
  expect_operands(name, context.operands, 1);
  const Type& bucket = context.operands[0];
  for (const Shape& shape : shapes) expect_sizes(name, shape);
  double elements = 0;
  for (const Shape& shape : shapes) elements += static_cast<double>(numel(shape)) + bucket_unit;
  const std::int64_t least =
      elements > static_cast<double>(most_elements) ? most_elements + 1 : offsets_in_bucket(shapes).back();
  const bool contains = bucket.shape.size() == 1 && bucket.shape[0] >= least && bucket.shape[0] % bucket_unit == 0;
  if (shapes.empty() || !contains) {
    throw TypeError(6, fmt::format("{}: {} is no bucket of these {} arrays", name, describe(bucket), shapes.size()),
                    shapes.empty() ? "it takes the shapes of one array or more"
                                   : fmt::format("a bucket of them has one dimension of a multiple of {} elements, at "
                                                 "least {}",
                                                 bucket_unit, least));
  }
  std::vector<Type> parts;
  for (const Shape& shape : shapes) parts.push_back({bucket.dtype, shape, {}});
  return parts;
}

Cost Unpack::cost(const Mesh&, std::span<const Type> operands, std::span<const Type> results) const {
  return traffic(operands, results);
}

// A bucket of the cotangents, with zeros for an array that has none.
Cotangents Unpack::derivative(VjpContext& context) const {
  Builder& b = context.b;
  std::vector<Value> parts;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const DType dtype = b.type(context.operands[0]).dtype;
    parts.push_back(context.cotangents[i] ? *context.cotangents[i] : b.constant(dtype, 0.0, shapes[i]));
  }
  const std::int64_t elements = b.type(context.operands[0]).shape[0];
  return {b.emit(Pack{elements == offsets_in_bucket(shapes).back() ? 0 : elements}, parts)};
}

void Unpack::reference(const ReferenceCall& call) const {
  const std::vector<std::int64_t> offsets = offsets_in_bucket(shapes);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::size_t size = bytes(*call.results[i].type);
    const std::byte* const from = call.operands[0].data + bytes_at(offsets[i], call.operands[0].dtype());
    if (size > 0) std::memcpy(call.results[i].data, from, size);
  }
}

}  // namespace pmaptrain::ops
