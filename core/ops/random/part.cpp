#include "core/ops/random/part.h"

namespace pmaptrain::ops {

std::uint32_t offset_of(const ReferenceCall& call) {
  if (call.operands.size() < 3) return 0;
  const ConstArray& offset = call.operands[2];
  return static_cast<std::uint32_t>(offset.dtype() == DType::i64 ? *offset.as<std::int64_t>()
                                                                 : *offset.as<std::int32_t>());
}

RowPart::RowPart(const Shape& shape, std::span<const std::int64_t> of_undivided) {
  if (of_undivided.empty()) {
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
