#include "core/model/layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/wildcards.h"
#include "core/model/element_walk.h"
#include "core/model/other_names.h"

namespace pmaptrain::model {
namespace {

std::vector<std::int64_t> in_order(std::size_t rank) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  return axes;
}

}  // namespace

bool StoredParameter::is_reordered() const { return axes != in_order(axes.size()) || reversed > 0; }

Shape StoredParameter::array_shape() const {
  Shape whole = shape;
  if (is_part()) whole[along] *= parts;
  return whole;
}

StoredParameter stored(const Parameter& parameter, ParameterLayout layout, std::optional<bool> transposed) {
  const bool flax = layout == ParameterLayout::flax;
  const TorchParameter& torch = parameter.torch;
  const OtherName* const other = has_other_names(layout) ? find_other_name(layout, parameter.name) : nullptr;
  const bool transposes =
      has_other_names(layout) ? other_names(layout).transposes || other == nullptr || other->is_linear : !flax;
  const auto dot = static_cast<std::ptrdiff_t>(parameter.name.rfind('.') + 1);
  StoredParameter found{parameter.name, {}, parameter.shape, in_order(parameter.shape.size())};
  if (other != nullptr) {
    found.name = with_wildcards(other->theirs, *wildcards(other->ours, parameter.name));
    found.part = other->part;
    found.parts = other->parts;
    found.shape.assign(other->ones, 1);
  } else if (!flax && !torch.whole.empty()) {
    found.name = torch.whole;
    found.added = torch.added;
    found.part = torch.part;
    found.parts = torch.parts;
  } else if (!flax && !torch.field.empty()) {
    found.name.replace(found.name.begin() + dot, found.name.end(), torch.field);
  }
  if (transposed.value_or(transposes) && !torch.axes.empty()) found.axes = torch.axes;
  if (!flax) found.reversed = torch.reversed;
  for (const std::int64_t axis : found.axes) {
    const std::int64_t size = parameter.shape[static_cast<std::size_t>(axis)];
    if (!flax && torch.merged && axis == *torch.merged + 1) {
      found.shape.back() *= size;  // its two dimensions are neighbours there too
    } else {
      found.shape.push_back(size);
    }
  }
  if (other != nullptr && found.is_part()) found.along = found.shape.size() - 1;
  if (flax || parameter.image.empty()) return found;
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

Placement placement(const StoredParameter& stored) {
  // Dimensions of the array, or of what it has in their place, from the last on. A range along a dimension of the array
  // is one along the first of the view's dimensions that the array has there.
  Placement placed{0, std::vector<std::int64_t>(stored.view.size(), 0)};
  std::int64_t stride = 1,
               range = 1;  // range: the elements of a range from one index of the dimension before to the next
  for (std::size_t d = stored.shape.size(); d-- > stored.along;) range *= stored.shape[d];
  for (std::size_t i = stored.axes.size(); i-- > 0;) {
    const auto axis = static_cast<std::size_t>(stored.axes[i]);
    placed.strides[axis] = stride;
    stride *= stored.view[axis];
    if (stored.is_part() && stride == range) {
      placed.first = stored.part * range;
      stride *= stored.parts;
    }
  }
  for (std::size_t axis = 0; axis < stored.reversed; ++axis) {
    placed.first += (stored.view[axis] - 1) * placed.strides[axis];
    placed.strides[axis] = -placed.strides[axis];
  }
  return placed;
}

void to_stored(const StoredParameter& stored, std::span<const std::byte> elements, std::size_t element_bytes,
               std::span<std::byte> array) {
  const ElementWalk walk(stored);
  for (std::size_t task = 0; task < walk.tasks(); ++task) {
    walk.run(task, [&](std::size_t element, std::size_t place) {
      std::memcpy(array.data() + place * element_bytes, elements.data() + element * element_bytes, element_bytes);
    });
  }
}

std::vector<std::byte> to_stored(const StoredParameter& stored, std::span<const std::byte> elements,
                                 std::size_t element_bytes) {
  std::vector<std::byte> array(static_cast<std::size_t>(numel(stored.array_shape())) * element_bytes);
  to_stored(stored, elements, element_bytes, array);
  return array;
}

std::vector<std::byte> from_stored(const StoredParameter& stored, std::span<const std::byte> array,
                                   std::size_t element_bytes) {
  std::vector<std::byte> elements(static_cast<std::size_t>(numel(stored.view)) * element_bytes);
  const ElementWalk walk(stored);
  for (std::size_t task = 0; task < walk.tasks(); ++task) {
    walk.run(task, [&](std::size_t element, std::size_t place) {
      std::memcpy(elements.data() + element * element_bytes, array.data() + place * element_bytes, element_bytes);
    });
  }
  return elements;
}

}  // namespace pmaptrain::model
