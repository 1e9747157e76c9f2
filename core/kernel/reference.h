// Reference kernels on one logical device. Tests compare other kernels with them, and builds without a kernel library
// use them.
#pragma once

#include <cstddef>
#include <span>

#include "core/graph/type.h"
#include "core/mesh/blocks.h"

namespace pmaptrain {

struct Region;

// A row-major array in host memory, which the caller owns.
struct ConstArray {
  const Type* type = nullptr;
  const std::byte* data = nullptr;

  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data);
  }
  const Shape& shape() const { return type->shape; }
  DType dtype() const { return type->dtype; }
  std::int64_t size() const { return numel(*type); }
};

struct Array {
  const Type* type = nullptr;
  std::byte* data = nullptr;

  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  const Shape& shape() const { return type->shape; }
  DType dtype() const { return type->dtype; }
  std::int64_t size() const { return numel(*type); }
  operator ConstArray() const { return {type, data}; }  // NOLINT: an array reads as a const one
};

// The arguments of a reference kernel. Operands must not overlap results, except that a result of an elementwise op may
// have the memory of an operand.
struct ReferenceCall {
  std::span<const ConstArray> operands;
  std::span<const Array> results;
  const Region* region = nullptr;    // the equation's region, if it has one
  std::span<const Type> types = {};  // if there is a region: the types of all values of the program
};

// Computes a collective for one device of a group. operands[i][m] is operand i of device m of the group, `member` is
// the index of the computed device in the group, and `results` are its results. A reduction first adds the operands of
// each block in order, then the sums of the blocks in a tree (core/mesh/blocks.h). `tree` has the sums that are added
// in the tree, at most 2^20 of them, from left to right; if it is empty, all operands belong to one block. Other
// collectives ignore it. The result of a reduction may have the memory of the first operand.
struct CollectiveCall {
  std::span<const std::span<const ConstArray>> operands;
  std::int64_t member = 0;
  std::span<const Array> results;
  std::span<const TreeNode> tree = {};
};

}  // namespace pmaptrain
