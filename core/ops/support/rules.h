// Common parts of the type rules, costs and derivatives of ops. All errors here belong to rule 6, on element types and
// shapes of local ops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/builder.h"

namespace pmaptrain::ops {

// Kernels that loop over dimensions keep counters in arrays of this size, so that they never allocate.
inline constexpr std::size_t max_rank = 8;

// The maximum of attributes that are sizes or are added to sizes, so that sums of a few do not overflow.
inline constexpr std::int64_t most_elements = 1'000'000'000'000;

// A type without its set of axes, on which rules of local ops do not depend, for example "f32[2,3]".
std::string describe(const Type& type);
std::string describe(std::span<const Type> types);

// Each function throws TypeError unless the condition in its name holds. `op` is the op's name, `what` the operand's.
void expect_operands(std::string_view op, std::span<const Type> operands, std::size_t count);
void expect_numeric(std::string_view op, DType dtype);
void expect_index_type(std::string_view op, std::string_view what, const Type& type);
void expect_rank(std::string_view op, const Shape& shape);
void expect_sizes(std::string_view op, const Shape& shape);

// Checks that `dims` are dimensions of an operand with `rank` dimensions, in ascending order without duplicates. `help`
// is the hint for dimensions in another order; a default hint is used if it is empty.
void expect_rising_dims(std::string_view op, std::span<const std::int64_t> dims, std::size_t rank,
                        std::string help = {});

// The element type of a sum or product of elements of type `of`: `of` itself, or f32 for bf16 if preferred. Throws
// TypeError (rule 6) for any other preference.
DType result_dtype(std::string_view op, DType of, std::optional<DType> preferred);

// The cost of reading each operand and writing each result once.
Cost traffic(std::span<const Type> operands, std::span<const Type> results, double flops = 0);

// A list with one result type. Op::infer adds the set of axes.
std::vector<Type> one_result(DType dtype, Shape shape);

// All dimensions of a shape: 0, 1, ... rank - 1.
std::vector<std::int64_t> all_dims(const Shape& shape);

}  // namespace pmaptrain::ops
