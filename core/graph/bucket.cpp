#include "core/graph/bucket.h"

namespace pmaptrain {
namespace {

template <class Arrays, class SizeOf>
std::vector<std::int64_t> offsets_by_size(const Arrays& arrays, SizeOf&& size_of) {
  std::vector<std::int64_t> offsets{0};
  offsets.reserve(arrays.size() + 1);
  for (const auto& array : arrays) {
    const std::int64_t units = (size_of(array) + bucket_unit - 1) / bucket_unit;
    offsets.push_back(offsets.back() + units * bucket_unit);
  }
  return offsets;
}

}  // namespace

std::vector<std::int64_t> offsets_in_bucket(std::span<const Shape> shapes) {
  return offsets_by_size(shapes, [](const Shape& shape) { return numel(shape); });
}

std::vector<std::int64_t> offsets_in_bucket(std::span<const Type> arrays) {
  return offsets_by_size(arrays, [](const Type& type) { return numel(type); });
}

}  // namespace pmaptrain
