#include "core/ops/support/rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace pmaptrain::ops {

std::string describe(const Type& type) { return std::string(to_string(type.dtype)) + to_string(type.shape); }

std::string describe(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + describe(type);
  return text.empty() ? "nothing" : text;
}

void expect_operands(std::string_view op, std::span<const Type> operands, std::size_t count) {
  if (operands.size() == count) return;
  throw TypeError(6, fmt::format("{}: takes {} operand{}, not {}", op, count, count == 1 ? "" : "s", operands.size()),
                  fmt::format("the operands given are {}", describe(operands)));
}

void expect_numeric(std::string_view op, DType dtype) {
  if (dtype != DType::boolean) return;
  throw TypeError(6, fmt::format("{}: works on numbers, not on bool", op), "cast a bool to a number: 0 or 1");
}

void expect_index_type(std::string_view op, std::string_view what, const Type& type) {
  if (type.dtype == DType::i32 || type.dtype == DType::i64) return;
  throw TypeError(6, fmt::format("{}: {} must be i32 or i64, not {}", op, what, describe(type)),
                  "cast them to i32 or i64");
}

void expect_rank(std::string_view op, const Shape& shape) {
  if (shape.size() <= max_rank) return;
  throw TypeError(
      6, fmt::format("{}: {} has {} dimensions, and {} are supported", op, to_string(shape), shape.size(), max_rank),
      "reshape neighbouring dimensions into one");
}

void expect_sizes(std::string_view op, const Shape& shape) {
  std::int64_t elements = 1;
  for (std::int64_t size : shape) {
    if (size < 0) throw TypeError(6, fmt::format("{}: the shape {} has a negative size", op, to_string(shape)));
    if (size > most_elements / elements) {
      throw TypeError(6, fmt::format("{}: the shape {} has more than 10^12 elements", op, to_string(shape)));
    }
    elements *= std::max<std::int64_t>(size, 1);
  }
}

void expect_rising_dims(std::string_view op, std::span<const std::int64_t> dims, std::size_t rank, std::string help) {
  std::int64_t previous = -1;
  for (std::int64_t dim : dims) {
    if (dim < 0 || dim >= static_cast<std::int64_t>(rank)) {
      throw TypeError(6, fmt::format("{}: there is no dimension {} among {}", op, dim, rank),
                      rank == 0 ? "a scalar has no dimensions" : fmt::format("dimensions are 0 to {}", rank - 1));
    }
    if (dim <= previous) {
      Shape rising(dims.begin(), dims.end());
      std::sort(rising.begin(), rising.end());
      rising.erase(std::unique(rising.begin(), rising.end()), rising.end());
      if (help.empty()) help = fmt::format("their order means nothing here: write dims={}", to_string(rising));
      throw TypeError(
          6,
          fmt::format("{}: dims={} does not rise: {} stands {}", op, to_string(Shape(dims.begin(), dims.end())), dim,
                      dim == previous ? std::string("twice") : fmt::format("behind {}", previous)),
          help);
    }
    previous = dim;
  }
}

DType result_dtype(std::string_view op, DType of, std::optional<DType> preferred) {
  if (!preferred) return of;
  if (of == DType::bf16 && *preferred == DType::f32) return *preferred;
  throw TypeError(
      6, fmt::format("{}: preferred_element_type={} for operands of {}", op, to_string(*preferred), to_string(of)),
      "it is f32, for operands of bf16; without it the result has the operands' type");
}

Cost traffic(std::span<const Type> operands, std::span<const Type> results, double flops) {
  Cost cost;
  cost.flops = flops;
  for (const Type& type : operands) cost.bytes += static_cast<double>(bytes(type));
  for (const Type& type : results) cost.bytes += static_cast<double>(bytes(type));
  return cost;
}

std::vector<Type> one_result(DType dtype, Shape shape) {
  std::vector<Type> types(1);  // an initializer list would copy the shape
  types.front() = {dtype, std::move(shape), {}};
  return types;
}

std::vector<std::int64_t> all_dims(const Shape& shape) {
  std::vector<std::int64_t> dims(shape.size());
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

}  // namespace pmaptrain::ops
