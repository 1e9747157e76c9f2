// Plain kernels on one logical device: the oracle in tests, and the kernels of builds without a kernel library.
#pragma once

#include <cstddef>
#include <span>

#include "core/graph/type.h"

namespace pmaptrain {

struct Region;

// A row-major array in host memory; the caller keeps it alive.
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

// Operands never overlap results, except that an elementwise op's result may be one of its operands' memory.
struct ReferenceCall {
  std::span<const ConstArray> operands;
  std::span<const Array> results;
  const Region* region = nullptr;    // of an op that carries one
  std::span<const Type> types = {};  // with a region: of all values of the program
};

// A collective for one member of its group: the operands of all members in group order (operands[i][m]), its
// own position among them, and its results.
struct CollectiveCall {
  std::span<const std::span<const ConstArray>> operands;
  std::int64_t member = 0;
  std::span<const Array> results;
};

}  // namespace pmaptrain
