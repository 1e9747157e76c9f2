#include "core/ops/elementwise/vector.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/kernel/vector_convert.h"
#include "core/ops/cast/convert.h"
#include "core/ops/list.h"

namespace pmaptrain::ops {
namespace {

template <class To>
struct ConvertTo {
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

namespace portable {
#include "core/ops/elementwise/vector_loops.inc"

// The loops over other types. Bytes and unsigned numbers are rare: they have none, and their reference runs once for
// each device.
template <class F>
VectorFunction find_rare(DType operand, unsigned scalars) {
  switch (operand) {
    case DType::f64: return loop_of<F, double>(scalars);
    case DType::i64: return loop_of<F, std::int64_t>(scalars);
    default: return nullptr;
  }
}

VectorFunction convert_rare(DType from, DType to) {
  return dispatch(from, [&]<class From>() {
    return dispatch(to, []<class To>() -> VectorFunction { return &Unary<ConvertTo<To>, From, To>::run; });
  });
}
}  // namespace portable

// Contraction is off for the whole program, so results do not depend on the vector width.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PMAPTRAIN_WIDE_LOOPS 1
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
namespace wide {
#include "core/ops/elementwise/vector_loops.inc"
}
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4,prefer-vector-width=512")
namespace widest {
#include "core/ops/elementwise/vector_loops.inc"
}
#pragma GCC pop_options

bool has_wide_vectors() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return has;
}

bool has_widest_vectors() {
  static const bool has = has_wide_vectors() && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}
#endif

template <class T>
void repeat(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  using Any = typename Bits<T>::Any;
  const T value = *reinterpret_cast<const Any*>(a);
  Any* const to = reinterpret_cast<Any*>(out);
  for (std::size_t i = 0; i < n; ++i) to[i] = value;
}

template <std::size_t Size>
void copy(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  std::memmove(out, a, n * Size);
}

template <VectorMath function>
void call(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  function(n, reinterpret_cast<const float*>(a), reinterpret_cast<float*>(out));
}

template <VectorMath2 function, std::size_t step_a, std::size_t step_b>
void call2(const std::byte* a, const std::byte* b, const std::byte*, std::byte* out, std::size_t n) {
  function(n, reinterpret_cast<const float*>(a), step_a, reinterpret_cast<const float*>(b), step_b,
           reinterpret_cast<float*>(out));
}

// Elements of bf16 are processed in blocks in f32.
constexpr std::size_t f32_block = 256;

template <VectorMath function>
void call_on_bf16(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t n) {
  const auto* x = reinterpret_cast<const bf16*>(a);
  auto* to = reinterpret_cast<bf16*>(out);
  std::array<float, f32_block> block;
  for (std::size_t first = 0; first < n; first += f32_block) {
    const std::size_t count = std::min(f32_block, n - first);
    to_f32(count, x + first, block.data());
    function(count, block.data(), block.data());
    to_bf16(count, block.data(), to + first);
  }
}

template <VectorMath2 function, std::size_t step_a, std::size_t step_b>
void call2_on_bf16(const std::byte* a, const std::byte* b, const std::byte*, std::byte* out, std::size_t n) {
  const auto *x = reinterpret_cast<const bf16*>(a), *y = reinterpret_cast<const bf16*>(b);
  auto* to = reinterpret_cast<bf16*>(out);
  std::array<float, f32_block> block_x, block_y;
  block_x[0] = *x;
  block_y[0] = *y;
  for (std::size_t first = 0; first < n; first += f32_block) {
    const std::size_t count = std::min(f32_block, n - first);
    if (step_a == 1) to_f32(count, x + first, block_x.data());
    if (step_b == 1) to_f32(count, y + first, block_y.data());
    // Use the block of an operand that is read element by element.
    float* const result = step_a == 1 ? block_x.data() : block_y.data();
    function(count, block_x.data(), step_a, block_y.data(), step_b, result);
    to_bf16(count, result, to + first);
  }
}

template <VectorMath function>
VectorFunction find_call(unsigned) {
  return &call<function>;
}

template <VectorMath function>
VectorFunction find_call_on_bf16(unsigned) {
  return &call_on_bf16<function>;
}

template <VectorMath2 function>
VectorFunction find_call_on_bf16(unsigned scalars) {
  if (scalars == 1) return &call2_on_bf16<function, 0, 1>;
  if (scalars == 2) return &call2_on_bf16<function, 1, 0>;
  return &call2_on_bf16<function, 1, 1>;
}

template <VectorMath2 function>
VectorFunction find_call(unsigned scalars) {
  if (scalars == 1) return &call2<function, 0, 1>;
  if (scalars == 2) return &call2<function, 1, 0>;
  return &call2<function, 1, 1>;
}

template <class T>
concept HasFunctor = requires {
  typename T::Of;
};
template <class T>
concept HasVectorMath = has_vector_math && requires {
  T::vectors;
};

// Calls `ask` for the loops with the widest vectors that the machine supports.
template <class Ask>
VectorFunction ask_the_widest(Ask ask) {
#ifdef PMAPTRAIN_WIDE_LOOPS
  if (has_widest_vectors()) return ask(widest::Loops{});
  if (has_wide_vectors()) return ask(wide::Loops{});
#endif
  return ask(portable::Loops{});
}

// For an elementwise op: the function that its own kernel calls, or the loop of its functor.
template <class T>
VectorFunction find_of(DType operand, unsigned scalars) {
  if constexpr (HasVectorMath<T>) {
    if (operand == DType::f32) return find_call<T::vectors>(scalars);
    if (operand == DType::bf16) return find_call_on_bf16<T::vectors>(scalars);
  }
  const VectorFunction found =
      ask_the_widest([&](auto loops) { return loops.template find<typename T::Of>(operand, scalars); });
  return found != nullptr ? found : portable::find_rare<typename T::Of>(operand, scalars);
}

template <class... Ops>
VectorFunction find_among(OpList<Ops...>, const Op& op, DType operand, unsigned scalars) {
  VectorFunction found = nullptr;
  const auto try_one = [&]<class T>() {
    if constexpr (HasFunctor<T>) {
      if (op.as<T>() != nullptr) found = find_of<T>(operand, scalars);
    }
  };
  (try_one.template operator()<Ops>(), ...);
  return found;
}

}  // namespace

VectorFunction find_vector_function(const Op& op, DType operand, unsigned scalars) {
  if (const auto* cast = op.as<Cast>()) {
    const VectorFunction found = ask_the_widest([&](auto loops) { return loops.convert(operand, cast->dtype); });
    return found != nullptr ? found : portable::convert_rare(operand, cast->dtype);
  }
  if (op.as<Select>() != nullptr) {
    return ask_the_widest([&](auto loops) { return loops.select(operand, scalars); });
  }
  return find_among(AllOps{}, op, operand, scalars);
}

VectorFunction find_copy(DType dtype, bool scalar) {
  return dispatch_words(dtype, [&]<class T>() { return scalar ? &repeat<T> : &copy<sizeof(T)>; });
}

}  // namespace pmaptrain::ops
