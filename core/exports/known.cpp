#include "core/exports/known.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/ops/all.h"
#include "core/ops/list.h"

namespace pmaptrain::exports {
namespace {

Known computed(const Op& op, std::span<const Known> operands, const Type& result) {
  auto elements = std::make_shared<std::vector<std::byte>>(bytes(result));
  std::vector<ConstArray> arrays;
  for (const Known& operand : operands) arrays.push_back({&operand.type, operand.bytes.data()});
  const Array array{&result, elements->data()};
  kernels_of(op).reference(op.data(), {arrays, {&array, 1}});
  return {"number", result, *elements, std::move(elements)};
}

// The elements with those that are repeated.
Known repeated_to(Known known, const Type& type) {
  if (known.type.shape == type.shape) return known;
  ops::Broadcast op{type.shape, {}};
  Shape kept;
  for (std::size_t d = 0; d < known.type.shape.size(); ++d) {
    if (known.type.shape[d] != type.shape[d]) continue;
    op.dims.push_back(static_cast<std::int64_t>(d));
    kept.push_back(type.shape[d]);
  }
  known.type.shape = std::move(kept);
  Known all = computed(op, {&known, 1}, type);
  all.name = known.name;
  return all;
}

}  // namespace

Known folded(const Op& op, std::span<const Known> values, std::span<const Type> operands, const Type& result) {
  if (const auto* const broadcast = op.as<ops::Broadcast>()) {
    Known view = values.front();
    Shape shape(broadcast->shape.size(), 1);
    for (std::size_t d = 0; d < broadcast->dims.size(); ++d) {
      shape[static_cast<std::size_t>(broadcast->dims[d])] = view.type.shape[d];
    }
    view.type.shape = std::move(shape);
    return view;
  }
  // What is repeated for all operands of an elementwise op stays so in the result.
  Type made_type = result;
  if (op.rules().elementwise) {
    made_type.shape.assign(result.shape.size(), 1);
    for (const Known& value : values) {
      for (std::size_t d = 0; d < value.type.shape.size(); ++d) {
        made_type.shape[d] = std::max(made_type.shape[d], value.type.shape[d]);
      }
    }
  }
  std::vector<Known> whole;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool is_scalar = values[i].type.shape.empty();
    const Shape& shape = op.rules().elementwise && !is_scalar ? made_type.shape : operands[i].shape;
    whole.push_back(repeated_to(values[i], {operands[i].dtype, shape, {}}));
  }
  if (op.as<ops::Reshape>() != nullptr) {
    whole.front().type = result;
    return whole.front();
  }
  Known made = computed(op, whole, made_type);
  if (whole.size() == 1) made.name = whole.front().name;
  return made;
}

std::string add_initializer(onnx::Graph& graph, const Known& known, bool whole) {
  Shape shape = known.type.shape;
  if (!whole) shape.erase(shape.begin(), std::find_if(shape.begin(), shape.end(), [](auto size) { return size != 1; }));
  const onnx::ElementType type = element_type(known.type.dtype);
  if (known.owned == nullptr) return graph.initializer(known.name, std::move(shape), known.bytes, type);
  return graph.initializer(known.name, std::move(shape), std::vector<std::byte>(*known.owned), type);
}

onnx::ElementType element_type(DType dtype) {
  using onnx::ElementType;
  switch (dtype) {
    case DType::u8: return ElementType::u8;
    case DType::i32: return ElementType::i32;
    case DType::i64: return ElementType::i64;
    case DType::f64: return ElementType::f64;
    case DType::boolean: return ElementType::boolean;
    case DType::f32: break;
    case DType::bf16:
    case DType::u32: assert(false); break;  // a model in float32 has none
  }
  return ElementType::f32;
}

}  // namespace pmaptrain::exports
