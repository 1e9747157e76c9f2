// Elements that are known when a model is exported: parameters, constants, and what equations compute of these.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/onnx/graph.h"

namespace pmaptrain::exports {

// Of programs that become nodes. Where it is 1, it could not be told from a size of 1.
inline constexpr std::int64_t rows_of_programs = 2;

struct Known {
  std::string name = "number";  // of its initializer
  Type type;                    // a size of 1 also stands for one along which the elements are repeated
  std::span<const std::byte> bytes;
  std::shared_ptr<const std::vector<std::byte>> owned = nullptr;  // null: somebody else owns the bytes
};

// What an op of one result makes of such operands. `operands` are their types in the program, `result` is that of the
// result. A broadcast and a reshape copy nothing.
Known folded(const Op& op, std::span<const Known> values, std::span<const Type> operands, const Type& result);

// The initializer, without dimensions of 1 before the others; with all of them if `whole`.
std::string add_initializer(onnx::Graph& graph, const Known& known, bool whole);

onnx::ElementType element_type(DType dtype);

}  // namespace pmaptrain::exports
