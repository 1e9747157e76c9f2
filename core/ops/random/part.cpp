#include "core/ops/random/part.h"

namespace pmaptrain::ops {

std::uint32_t offset_in(DType dtype, const std::byte* data) {
  return static_cast<std::uint32_t>(dtype == DType::i64 ? *reinterpret_cast<const std::int64_t*>(data)
                                                        : *reinterpret_cast<const std::int32_t*>(data));
}

std::uint32_t offset_of(const ReferenceCall& call, std::size_t operand) {
  if (operand >= call.operands.size()) return 0;
  return offset_in(call.operands[operand].dtype(), call.operands[operand].data);
}

RowPart::RowPart(const Shape& shape, std::span<const std::int64_t> of_undivided) {
  if (of_undivided.empty() || numel(shape) == 0) {
    sizes.push(numel(shape));
    strides.push(1);
    return;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1 && (sizes.rank > 0 || d + 1 < shape.size())) continue;
    if (sizes.rank > 0 && inner_stride() == shape[d] * of_undivided[d]) {
      sizes[sizes.rank - 1] *= shape[d];
      strides[sizes.rank - 1] = of_undivided[d];
    } else {
      sizes.push(shape[d]);
      strides.push(of_undivided[d]);
    }
  }
}

std::int64_t RowPart::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes.span()) count *= size;
  return count;
}

std::uint32_t RowPart::index_of(std::int64_t element) const {
  std::int64_t index = 0;
  for (std::size_t d = sizes.rank; d-- > 0;) {
    index += element % sizes[d] * strides[d];
    element /= sizes[d];
  }
  return static_cast<std::uint32_t>(index);
}

}  // namespace pmaptrain::ops
