// The common parts of the type rules, costs and derivatives of many ops. All errors here are rule 6: the element types
// and shapes of local ops.
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

// Kernels that walk dimensions keep their counters in arrays of this size, so that they never allocate.
inline constexpr std::size_t max_rank = 8;

// More than any attribute that is a size or is added to one may be, so that sums of a few do not overflow.
inline constexpr std::int64_t most_elements = 1'000'000'000'000;

// "f32[2,3]": a type without its set of axes, which rules of local ops do not depend on.
std::string describe(const Type& type);
std::string describe(std::span<const Type> types);

// Each throws TypeError unless the condition in its name holds. `op` is the op's name, `what` the operand's.
void expect_operands(std::string_view op, std::span<const Type> operands, std::size_t count);
void expect_numeric(std::string_view op, DType dtype);
void expect_index_type(std::string_view op, std::string_view what, const Type& type);
void expect_rank(std::string_view op, const Shape& shape);
void expect_sizes(std::string_view op, const Shape& shape);

// `dims` are dimensions of an operand of `rank` dimensions, each at most once and in rising order. `help` is for those
// that do not rise; by default, that they are to be written so.
void expect_rising_dims(std::string_view op, std::span<const std::int64_t> dims, std::size_t rank,
                        std::string help = {});

// The element type of a sum or product of elements of type `of`: their own, or f32 for bf16, which is what it is
// computed in. Throws TypeError (rule 6) for another preference.
DType result_dtype(std::string_view op, DType of, std::optional<DType> preferred);

// Reads each operand and writes each result once.
Cost traffic(std::span<const Type> operands, std::span<const Type> results, double flops = 0);

// One result of this type; its set is filled in by Op::infer.
std::vector<Type> one_result(DType dtype, Shape shape);

// All dimensions of a shape: 0, 1, ... rank - 1.
std::vector<std::int64_t> all_dims(const Shape& shape);

}  // namespace pmaptrain::ops
