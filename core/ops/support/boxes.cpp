#include "core/ops/support/boxes.h"

#include <cstring>

namespace pmaptrain::ops {

Dims row_major(std::span<const std::int64_t> sizes) {
  Dims strides;
  strides.rank = sizes.size();
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= sizes[i];
  }
  return strides;
}

void copy_box(std::span<const std::int64_t> sizes, const std::byte* from, Dims from_strides, std::byte* to,
              Dims to_strides, std::size_t element) {
  // Dimensions that end contiguously on both sides make one run.
  std::size_t rank = sizes.size();
  std::int64_t run = 1;
  while (rank > 0 && from_strides[rank - 1] == run && to_strides[rank - 1] == run) run *= sizes[--rank];
  if (run == 0) return;
  const std::size_t run_bytes = static_cast<std::size_t>(run) * element;
  walk(sizes.first(rank), from_strides.span().first(rank), to_strides.span().first(rank),
       [&](std::int64_t a, std::int64_t b) {
         std::memcpy(to + static_cast<std::size_t>(b) * element, from + static_cast<std::size_t>(a) * element,
                     run_bytes);
       });
}

}  // namespace pmaptrain::ops
