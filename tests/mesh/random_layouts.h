// Random layouts, and where their elements are by a plain computation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/philox.h"
#include "core/mesh/layout.h"

namespace pmaptrain::test {

// The element of the logical array that is element `local` on `device`; -1 for padding.
inline std::int64_t logical_of(const Layout& layout, const Mesh& mesh, std::int64_t device, std::int64_t local) {
  const Shape shape = local_shape(layout, mesh);
  std::int64_t logical = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    std::int64_t part = 0;
    for (const int axis : d < layout.divided.size() ? layout.divided[d] : std::vector<int>()) {
      part = part * mesh.size(axis) + mesh.coordinate(device, axis);
    }
    const std::int64_t index = part * shape[d] + local % shape[d];
    if (index >= layout.logical[d]) return -1;
    logical += index * stride;
    stride *= layout.logical[d];
    local /= shape[d];
  }
  return logical;
}

// A layout in which some of three axes divide dimensions, in any order. Its sizes are multiples of nothing.
inline Layout random_layout(std::vector<int> axes, std::uint32_t seed) {
  const std::array<std::uint32_t, 4> words = philox4x32(stream_key(seed, "layout"), {0, 0, 0, 0});
  Layout layout;
  const std::uint32_t rank = 1 + words[0] % 4;
  for (std::uint32_t d = 0; d < rank; ++d) layout.logical.push_back(1 + (words[1] >> 4 * d) % 7);
  layout.divided.resize(rank);
  for (std::uint32_t i = 0; !axes.empty(); ++i) {
    const std::size_t chosen = (words[2] >> 8 * i) % axes.size();
    const std::uint32_t d = (words[3] >> 8 * i) % (rank + 1);  // the last: it divides nothing
    if (d < rank) layout.divided[d].push_back(axes[chosen]);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return layout;
}

}  // namespace pmaptrain::test
