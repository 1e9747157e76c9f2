#include "core/mesh/mesh.h"

#include <algorithm>

namespace pmaptrain {

std::vector<int> AxisSet::list() const {
  std::vector<int> axes;
  for (int axis = 0; axis < 32; ++axis) {
    if (contains(axis)) axes.push_back(axis);
  }
  return axes;
}

std::int64_t Mesh::devices() const { return group_size(all()); }

std::optional<int> Mesh::find(std::string_view name) const {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (axes_[i].name == name) return static_cast<int>(i);
  }
  return std::nullopt;
}

std::int64_t Mesh::group_size(AxisSet axes) const {
  std::int64_t count = 1;
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    if (axes.contains(axis)) count *= size(axis);
  }
  return count;
}

std::int64_t Mesh::stride(int axis) const {
  std::int64_t stride = 1;
  for (int inner = axis + 1; inner < static_cast<int>(axes_.size()); ++inner) stride *= size(inner);
  return stride;
}

std::int64_t Mesh::coordinate(std::int64_t device, int axis) const { return device / stride(axis) % size(axis); }

std::int64_t Mesh::position(std::int64_t device, AxisSet axes) const {
  std::int64_t position = 0;
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    if (axes.contains(axis)) position = position * size(axis) + coordinate(device, axis);
  }
  return position;
}

std::int64_t Mesh::device_at(std::int64_t position, AxisSet axes) const {
  std::int64_t device = 0;
  for (int axis = static_cast<int>(axes_.size()) - 1; axis >= 0; --axis) {
    if (!axes.contains(axis)) continue;
    device += position % size(axis) * stride(axis);
    position /= size(axis);
  }
  return device;
}

std::vector<std::int64_t> Mesh::group(std::int64_t device, AxisSet axes) const {
  std::int64_t first = device;
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    if (axes.contains(axis)) first -= coordinate(device, axis) * stride(axis);
  }
  // From the innermost axis outwards, repeat the devices found so far along each axis, so that they stay in order.
  std::vector<std::int64_t> members = {first};
  members.reserve(static_cast<std::size_t>(group_size(axes)));
  for (int axis = static_cast<int>(axes_.size()); axis-- > 0;) {
    const std::size_t inner = members.size();
    for (std::int64_t k = 1; k < size(axis) && axes.contains(axis); ++k) {
      for (std::size_t i = 0; i < inner; ++i) members.push_back(members[i] + k * stride(axis));
    }
  }
  return members;
}

std::vector<std::string> Mesh::names() const {
  std::vector<std::string> names;
  for (const Axis& axis : axes_) names.push_back(axis.name);
  return names;
}

Mesh Mesh::only(AxisSet axes) const {
  std::vector<Axis> kept;
  for (const int axis : axes.list()) kept.push_back(axes_[static_cast<std::size_t>(axis)]);
  return Mesh(std::move(kept));
}

std::string Mesh::to_string(AxisSet axes) const {
  std::string text = "{";
  for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis) {
    if (!axes.contains(axis)) continue;
    if (text.size() > 1) text += ", ";
    text += name(axis);
  }
  return text + "}";
}

}  // namespace pmaptrain
