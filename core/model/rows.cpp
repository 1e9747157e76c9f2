#include "core/model/rows.h"

#include <algorithm>
#include <utility>

#include "core/equations/arithmetic.h"

namespace pmaptrain::model {

Value product_of_rows(Builder& b, Value x, Value kernel, Shape matrix, std::optional<Value> bias) {
  const std::int64_t columns = matrix.back();
  if (b.type(kernel).shape != matrix) kernel = b.emit(ops::Reshape{std::move(matrix)}, {kernel});
  kernel = cast(b, kernel, b.type(x).dtype);
  if (!bias) return b.emit(ops::Matmul{}, {x, kernel});
  if (b.type(*bias).shape.size() > 1) bias = b.emit(ops::Reshape{{columns}}, {*bias});
  return b.emit(ops::Matmul{}, {x, kernel, *bias});
}

std::string divisors_of(std::int64_t number) {
  constexpr std::int64_t most_tried = 65536;
  std::string text;
  for (std::int64_t i = 1; i <= std::min(number, most_tried); ++i) {
    if (number % i == 0) text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return text;
}

}  // namespace pmaptrain::model
