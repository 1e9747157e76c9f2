// Loops over elements, for elementwise ops and for the instructions of fused chains.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/graph/op.h"

namespace pmaptrain::ops {

// out[i] = f(a[i], b[i], c[i]) for n elements; an operand that is a scalar has one. The result may be the memory of an
// operand whose elements have the same size.
using VectorFunction = void (*)(const std::byte* a, const std::byte* b, const std::byte* c, std::byte* out,
                                std::size_t n);

// The loop for an elementwise op on operands of this element type (for select: that of what is selected), compiled for
// the CPU's vector registers; the bits are those of its functor, or of its function in vectors. Bit i of `scalars` says
// that operand i is a scalar; not all of several operands are. Null where there is none: the reference is then as fast.
VectorFunction find_vector_function(const Op& op, DType operand, unsigned scalars);

// Elements that are only moved are read and written as whole numbers of their size, whatever their type: as
// Bits<T>::Any, since a plain T must not alias them.
template <class T>
struct Bits {
  typedef T Any __attribute__((may_alias));  // in place of `using`, which drops the attribute of a template's argument
};

// As dispatch, with the unsigned number of the size of an element.
template <class F>
decltype(auto) dispatch_words(DType dtype, F&& f) {
  return dispatch(dtype, [&]<class T>() -> decltype(auto) {
    if constexpr (sizeof(T) == 1) {
      return f.template operator()<std::uint8_t>();
    } else if constexpr (sizeof(T) == 2) {
      return f.template operator()<std::uint16_t>();
    } else if constexpr (sizeof(T) == 4) {
      return f.template operator()<std::uint32_t>();
    } else {
      static_assert(sizeof(T) == 8);
      return f.template operator()<std::uint64_t>();
    }
  });
}

// Copies n elements, or repeats one.
VectorFunction find_copy(DType dtype, bool scalar);

}  // namespace pmaptrain::ops
