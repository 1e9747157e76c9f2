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
  // Dimensions that are contiguous on both sides are joined into one run.
  std::size_t rank = sizes.size();
  std::int64_t run = 1;
  while (rank > 0 && from_strides[rank - 1] == run && to_strides[rank - 1] == run) run *= sizes[--rank];
  if (run == 0) return;
  // The innermost remaining dimension has its own loop.
  const std::int64_t runs = rank == 0 ? 1 : sizes[rank - 1];
  const auto bytes_of = [element](std::int64_t elements) { return elements * static_cast<std::int64_t>(element); };
  const std::int64_t from_stride = rank == 0 ? 0 : bytes_of(from_strides[rank - 1]);
  const std::int64_t to_stride = rank == 0 ? 0 : bytes_of(to_strides[rank - 1]);
  const std::size_t outer = rank == 0 ? 0 : rank - 1;
  with_few_bytes(static_cast<std::size_t>(run) * element, [&](auto run_bytes) {
    walk(sizes.first(outer), from_strides.span().first(outer), to_strides.span().first(outer),
         [&](std::int64_t a, std::int64_t b) {
           const std::byte* const source = from + bytes_of(a);
           std::byte* const target = to + bytes_of(b);
           for (std::int64_t i = 0; i < runs; ++i)
             std::memcpy(target + i * to_stride, source + i * from_stride, run_bytes);
         });
  });
}

}  // namespace pmaptrain::ops
