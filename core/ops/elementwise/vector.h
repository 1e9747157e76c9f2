// Loops over elements, for elementwise ops and for the instructions of fused chains.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/graph/op.h"

namespace pmaptrain::ops {

// out[i] = f(a[i], b[i], c[i]) for n elements; a scalar operand has one element. The result may use the memory of an
// operand whose elements have the same size.
using VectorFunction = void (*)(const std::byte* a, const std::byte* b, const std::byte* c, std::byte* out,
                                std::size_t n);

// The loop of an elementwise op for operands of this element type (for select: the type of the selected values),
// compiled for the CPU's vector registers. Results equal those of the functor or vectorized function. Bit i of
// `scalars` tells that operand i is a scalar; of several operands, at least one is an array. Null if the reference is
// as fast.
VectorFunction find_vector_function(const Op& op, DType operand, unsigned scalars);

// The same for one element, as instructions on scalars have: it takes less time than a loop over vectors.
VectorFunction find_scalar_function(const Op& op, DType operand);

// The operations on f32 that find_pair() joins.
enum class Arithmetic : std::uint8_t { add, sub, mul };
std::optional<Arithmetic> arithmetic_of(const Op& op);

// The loop that computes (a first b) second c, or c second (a first b) if `reversed`, with the bits of two loops.
VectorFunction find_pair(Arithmetic first, Arithmetic second, bool reversed, unsigned scalars);

// Elements that are only moved are handled as unsigned integers of their size. They are accessed as Bits<T>::Any,
// because a plain T must not alias other types.
template <class T>
struct Bits {
  typedef T Any __attribute__((may_alias));  // `using` would drop the attribute of a template's argument
};

// Like dispatch, with the unsigned integer of the element's size.
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

// A function that copies n elements, or repeats one element n times.
VectorFunction find_copy(DType dtype, bool scalar);

}  // namespace pmaptrain::ops
