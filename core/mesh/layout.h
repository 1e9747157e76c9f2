// How an array is divided among the devices of a mesh. Its name means the whole array, the logical one; a device has a
// part of it, the local array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/shape.h"
#include "core/mesh/mesh.h"

namespace pmaptrain {

// A dimension is cut into equal ranges, one for each position along the axes that divide it. Where it has no multiple
// of their number, the last ranges reach past its end: what is there is padding. It begins as zeros, and a program
// keeps it so: norms and sums count it.
struct Layout {
  Shape logical;
  // By dimension: the axes that divide it, the major one first. Dimensions past the end of the list are whole.
  std::vector<std::vector<int>> divided = {};

  AxisSet axes() const;  // all of these
  friend bool operator==(const Layout&, const Layout&) = default;
};

// Why an array cannot be divided so: too many dimensions, or an axis that divides twice. Empty where it can be.
std::string layout_error(const Layout& layout, const Mesh& mesh);

// The shape of the local array, padding included.
Shape local_shape(const Layout& layout, const Mesh& mesh);

// "[80,96{model}]": the logical shape, and behind a dimension the axes that divide it.
std::string to_string(const Layout& layout, const Mesh& mesh);

// Equal runs of elements at equal distances, in the local array of a device and in a range of the logical array.
// Between the runs in the local array there is nothing but padding. All numbers but the first count elements.
struct StridedCopy {
  std::int64_t device = 0;        // the first device that has them: its coordinates along all other axes are 0
  std::int64_t local = 0;         // where the first run begins in the local array
  std::int64_t logical = 0;       // where it begins in the range
  std::int64_t run = 0;           // the length of a run
  std::int64_t times = 1;         // the number of runs
  std::int64_t stride = 0;        // from one run to the next in the range
  std::int64_t local_stride = 0;  // and in the local array

  std::int64_t extent() const { return (times - 1) * local_stride + run; }  // of the runs in the local array
  friend bool operator==(const StridedCopy&, const StridedCopy&) = default;
};

// The `count` elements from `begin` on of the logical array, in row-major order: each is in one of the copies.
std::vector<StridedCopy> copies_of(const Layout& layout, const Mesh& mesh, std::int64_t begin, std::int64_t count);

// Joins runs to copies.
class CopyList {
 public:
  // Adds a run, to the last copy of its device where it continues that one.
  void add(const StridedCopy& run);
  std::vector<StridedCopy> take() { return std::move(copies_); }

 private:
  std::vector<StridedCopy> copies_;
  std::unordered_map<std::int64_t, std::size_t> last_;  // by device: its last copy
};

}  // namespace pmaptrain
