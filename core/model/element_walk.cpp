#include "core/model/element_walk.h"

#include <iterator>

namespace pmaptrain::model {
namespace {

constexpr std::int64_t tile_size = 32, run_size = 1 << 14;

}  // namespace

ElementWalk::ElementWalk(const StoredParameter& stored) {
  const Placement placed = placement(stored);
  first_ = placed.first;
  std::int64_t stride = 1;
  std::vector<Dimension> dimensions;  // from the last on
  for (std::size_t d = stored.view.size(); d-- > 0; stride *= stored.view[d]) {
    const std::int64_t size = stored.view[d];
    if (size == 1) continue;
    if (!dimensions.empty()) {
      Dimension& inner = dimensions.back();
      if (inner.in_parameter * inner.size == stride && inner.in_array * inner.size == placed.strides[d]) {
        inner.size *= size;
        continue;
      }
    }
    dimensions.push_back({size, stride, placed.strides[d]});
  }
  if (dimensions.empty()) dimensions.push_back({});
  for (const std::int64_t size : stored.view) {
    if (size == 0) dimensions.front().size = 0;
  }
  columns_ = dimensions.front();
  dimensions.erase(dimensions.begin());
  const bool runs = columns_.in_array == 1;
  const auto neighbours = std::find_if(dimensions.begin(), dimensions.end(),
                                       [](const Dimension& one) { return one.in_array == 1 || one.in_array == -1; });
  if (!runs && neighbours != dimensions.end()) {
    rows_ = *neighbours;
    dimensions.erase(neighbours);
    rows_per_task_ = columns_per_task_ = tile_size;
  } else {
    if (!dimensions.empty()) {
      rows_ = dimensions.front();
      dimensions.erase(dimensions.begin());
    }
    columns_per_task_ = std::clamp<std::int64_t>(columns_.size, 1, run_size);
    rows_per_task_ = std::max<std::int64_t>(1, run_size / columns_per_task_);
  }
  outer_ = std::move(dimensions);
  const auto tiles = [](std::int64_t size, std::int64_t of) { return static_cast<std::size_t>((size + of - 1) / of); };
  tasks_ = tiles(columns_.size, columns_per_task_) * tiles(rows_.size, rows_per_task_);
  for (const Dimension& dimension : outer_) tasks_ *= static_cast<std::size_t>(dimension.size);
}

}  // namespace pmaptrain::model
