// The elements of a parameter in an order in which both its own memory and the array of a file are read in pieces.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/model/layout.h"

namespace pmaptrain::model {

// Visits each element once. A kernel that a file has transposed is visited in tiles, so that no line of memory is
// fetched for one element alone. Tasks are independent, for several threads.
class ElementWalk {
 public:
  explicit ElementWalk(const StoredParameter& stored);

  std::size_t tasks() const { return tasks_; }

  // Calls visit(element, place) for the elements of a task: the number of an element of the parameter, row-major, and
  // that of its place in the array.
  template <class Visit>
  void run(std::size_t task, const Visit& visit) const {
    const auto tile = [&task](std::int64_t size, std::int64_t of, std::int64_t& begin, std::int64_t& end) {
      const std::int64_t count = (size + of - 1) / of;
      begin = static_cast<std::int64_t>(task) % count * of;
      end = std::min(size, begin + of);
      task /= static_cast<std::size_t>(count);
    };
    std::int64_t row_begin = 0, row_end = 0, column_begin = 0, column_end = 0;
    tile(columns_.size, columns_per_task_, column_begin, column_end);
    tile(rows_.size, rows_per_task_, row_begin, row_end);
    std::int64_t element = 0, place = first_;
    for (const Dimension& dimension : outer_) {
      const auto size = static_cast<std::size_t>(dimension.size);
      const auto at = static_cast<std::int64_t>(task % size);
      task /= size;
      element += at * dimension.in_parameter;
      place += at * dimension.in_array;
    }
    for (std::int64_t row = row_begin; row < row_end; ++row) {
      const std::int64_t from = element + row * rows_.in_parameter, to = place + row * rows_.in_array;
      for (std::int64_t column = column_begin; column < column_end; ++column) {
        visit(static_cast<std::size_t>(from + column), static_cast<std::size_t>(to + column * columns_.in_array));
      }
    }
  }

 private:
  // The size of a dimension, and the distance of its neighbours.
  struct Dimension {
    std::int64_t size = 1, in_parameter = 1, in_array = 1;
  };

  std::int64_t first_ = 0;
  Dimension columns_;  // neighbours in the parameter
  Dimension rows_;     // neighbours in the array, where those of columns_ are none
  std::vector<Dimension> outer_;
  std::int64_t rows_per_task_ = 1, columns_per_task_ = 1;
  std::size_t tasks_ = 1;
};

}  // namespace pmaptrain::model
