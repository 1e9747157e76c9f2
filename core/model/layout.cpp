#include "core/model/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace pmaptrain::model {
namespace {

// An array of this shape with its dimensions in the order `axes`, and backwards along those that are `reversed`.
std::vector<std::byte> permuted(std::span<const std::byte> elements, const Shape& shape,
                                const std::vector<std::int64_t>& axes, const std::vector<bool>& reversed,
                                std::size_t element_bytes) {
  const std::size_t rank = axes.size();
  std::vector<std::size_t> strides(rank, element_bytes);  // of the operand
  for (std::size_t d = rank; d-- > 1;) strides[d - 1] = strides[d] * static_cast<std::size_t>(shape[d]);
  std::vector<std::byte> result(elements.size());
  std::vector<std::int64_t> index(rank, 0);  // in the result
  std::size_t from = 0;
  // Steps backwards wrap around, as unsigned numbers do.
  for (std::size_t d = 0; d < rank; ++d) {
    if (!reversed[d]) continue;
    from += strides[d] * static_cast<std::size_t>(shape[d] - 1);
    strides[d] = std::size_t{0} - strides[d];
  }
  for (std::size_t at = 0; at < result.size(); at += element_bytes) {
    std::memcpy(result.data() + at, elements.data() + from, element_bytes);
    for (std::size_t d = rank; d-- > 0;) {
      const auto axis = static_cast<std::size_t>(axes[d]);
      from += strides[axis];
      if (++index[d] < shape[axis]) break;
      from -= strides[axis] * static_cast<std::size_t>(shape[axis]);
      index[d] = 0;
    }
  }
  return result;
}

std::vector<std::int64_t> in_order(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  return axes;
}

}  // namespace

bool StoredParameter::is_reordered() const { return axes != in_order(axes.size()) || reversed > 0; }

StoredParameter stored(const Parameter& parameter, ParameterLayout layout, std::optional<bool> transposed) {
  const bool torch = layout == ParameterLayout::torch;
  const auto dot = static_cast<std::ptrdiff_t>(parameter.name.rfind('.') + 1);
  StoredParameter found{parameter.name, {}, parameter.shape, in_order(parameter.shape.size())};
  if (torch && !parameter.torch.whole.empty()) {
    found.name = parameter.torch.whole;
  } else if (torch && !parameter.torch.field.empty()) {
    found.name.replace(found.name.begin() + dot, found.name.end(), parameter.torch.field);
  }
  if (transposed.value_or(torch) && !parameter.torch.axes.empty()) found.axes = parameter.torch.axes;
  if (torch) found.reversed = parameter.torch.reversed;
  for (const std::int64_t axis : found.axes) {
    const std::int64_t size = parameter.shape[static_cast<std::size_t>(axis)];
    if (torch && parameter.torch.merged && axis == *parameter.torch.merged + 1) {
      found.shape.back() *= size;  // its two dimensions are neighbours there too
    } else {
      found.shape.push_back(size);
    }
  }
  if (!torch || parameter.image.empty()) return found;
  // The first dimension becomes three: those of the image.
  found.view.erase(found.view.begin());
  found.view.insert(found.view.begin(), parameter.image.begin(), parameter.image.end());
  const std::vector<std::int64_t> outer = std::exchange(found.axes, {});
  for (const std::int64_t axis : outer) {
    if (axis == 0) {
      found.axes.insert(found.axes.end(), {2, 0, 1});
    } else {
      found.axes.push_back(axis + 2);
    }
  }
  return found;
}

std::vector<std::byte> to_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                 std::size_t element_bytes) {
  std::vector<bool> reversed(stored.axes.size(), false);
  std::fill_n(reversed.begin(), stored.reversed, true);
  return permuted(elements, stored.view, stored.axes, reversed, element_bytes);
}

std::vector<std::byte> from_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                   std::size_t element_bytes) {
  Shape shape;
  std::vector<std::int64_t> axes(stored.axes.size());
  std::vector<bool> reversed;
  for (std::size_t d = 0; d < stored.axes.size(); ++d) {
    reversed.push_back(stored.axes[d] < static_cast<std::int64_t>(stored.reversed));
    shape.push_back(stored.view[static_cast<std::size_t>(stored.axes[d])]);
    axes[static_cast<std::size_t>(stored.axes[d])] = static_cast<std::int64_t>(d);
  }
  return permuted(elements, shape, axes, reversed, element_bytes);
}

}  // namespace pmaptrain::model
