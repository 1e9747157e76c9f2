#include "core/mesh/layout.h"

#include <algorithm>
#include <cassert>

namespace pmaptrain {
namespace {

// What divides the dimensions of an array, and where a device has which range of them.
class Ranges {
 public:
  Ranges(const Layout& layout, const Mesh& mesh)
      : layout_(layout), mesh_(mesh), local_(local_shape(layout, mesh)), strides_(local_.size(), 1) {
    for (std::size_t d = local_.size(); d-- > 1;) strides_[d - 1] = strides_[d] * local_[d];
    while (divided_ > 0 && !is_divided(divided_ - 1)) --divided_;
    for (std::size_t d = divided_; d < local_.size(); ++d) inner_ *= local_[d];
  }

  // The run of elements that begins at element `at` of the logical array and ends, at the latest, before `end`.
  StridedCopy run_at(std::int64_t at, std::int64_t end) const {
    StridedCopy run;
    std::int64_t rest = at / inner_;
    run.local = at % inner_;
    run.run = end - at;
    for (std::size_t d = divided_; d-- > 0;) {
      const std::int64_t size = layout_.logical[d], index = rest % size;
      rest /= size;
      if (d + 1 == divided_) {
        const std::int64_t last = std::min((index / local_[d] + 1) * local_[d], size);
        run.run = std::min(run.run, (last - index) * inner_ - run.local);
      }
      run.local += index % local_[d] * strides_[d];
      if (is_divided(d)) run.device += device_at(d, index / local_[d]);
    }
    return run;
  }

 private:
  bool is_divided(std::size_t d) const { return d < layout_.divided.size() && !layout_.divided[d].empty(); }

  // The first device with range `number` of a dimension.
  std::int64_t device_at(std::size_t d, std::int64_t number) const {
    std::int64_t device = 0;
    const std::vector<int>& axes = layout_.divided[d];
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      device += mesh_.device_at(number % mesh_.size(*axis), AxisSet::of(*axis));
      number /= mesh_.size(*axis);
    }
    return device;
  }

  const Layout& layout_;
  const Mesh& mesh_;
  const Shape local_;
  Shape strides_;                        // of the local array
  std::size_t divided_ = local_.size();  // one past the last dimension that is divided
  std::int64_t inner_ = 1;               // elements of the dimensions behind it
};

}  // namespace

AxisSet Layout::axes() const {
  AxisSet all;
  for (const std::vector<int>& axes : divided) {
    for (const int axis : axes) all = all | AxisSet::of(axis);
  }
  return all;
}

std::string layout_error(const Layout& layout, const Mesh& mesh) {
  if (layout.divided.size() > layout.logical.size()) return "it divides more dimensions than the array has";
  AxisSet seen;
  for (const std::vector<int>& axes : layout.divided) {
    for (const int axis : axes) {
      if (seen.contains(axis)) return "the axis '" + mesh.name(axis) + "' divides it twice";
      seen = seen | AxisSet::of(axis);
    }
  }
  return "";
}

Shape local_shape(const Layout& layout, const Mesh& mesh) {
  Shape shape = layout.logical;
  for (std::size_t d = 0; d < layout.divided.size(); ++d) {
    std::int64_t parts = 1;
    for (const int axis : layout.divided[d]) parts *= mesh.size(axis);
    shape[d] = (shape[d] + parts - 1) / parts;
  }
  return shape;
}

std::string to_string(const Layout& layout, const Mesh& mesh) {
  std::string text = "[";
  for (std::size_t d = 0; d < layout.logical.size(); ++d) {
    text += (d == 0 ? "" : ",") + std::to_string(layout.logical[d]);
    if (d >= layout.divided.size() || layout.divided[d].empty()) continue;
    for (std::size_t i = 0; i < layout.divided[d].size(); ++i) {
      text += (i == 0 ? "{" : ", ") + mesh.name(layout.divided[d][i]);
    }
    text += "}";
  }
  return text + "]";
}

void CopyList::add(const StridedCopy& run) {
  const auto [known, is_new] = last_.try_emplace(run.device, copies_.size());
  if (!is_new) {
    StridedCopy& copy = copies_[known->second];
    const std::int64_t stride = run.logical - copy.logical - (copy.times - 1) * copy.stride;
    const std::int64_t local_stride = run.local - copy.local - (copy.times - 1) * copy.local_stride;
    const bool continues = copy.times == 1 || (stride == copy.stride && local_stride == copy.local_stride);
    if (copy.run == run.run && continues) {
      copy.stride = stride;
      copy.local_stride = local_stride;
      ++copy.times;
      return;
    }
    known->second = copies_.size();
  }
  copies_.push_back(run);
}

std::vector<StridedCopy> copies_of(const Layout& layout, const Mesh& mesh, std::int64_t begin, std::int64_t count) {
  assert(begin >= 0 && begin + count <= numel(layout.logical));
  const Ranges ranges(layout, mesh);
  CopyList copies;
  for (std::int64_t at = begin; at < begin + count;) {
    StridedCopy run = ranges.run_at(at, begin + count);
    run.logical = at - begin;
    copies.add(run);
    at += run.run;
  }
  return copies.take();
}

}  // namespace pmaptrain
