#include "core/ops/elementwise/vector.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <type_traits>

#include "core/kernel/vector_convert.h"
#include "core/ops/cast/convert.h"
#include "core/ops/list.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define PMAPTRAIN_WIDE_LOOPS 1
#include <immintrin.h>
#endif

namespace pmaptrain::ops {
namespace {

template <class To>
struct ConvertTo {
  template <class From>
  To operator()(From x) const {
    return convert<To>(x);
  }
};

template <class F>
VectorFunction with_functor(Arithmetic which, const F& f) {
  switch (which) {
    case Arithmetic::add: return f(Add::Of{});
    case Arithmetic::sub: return f(Sub::Of{});
    case Arithmetic::mul: break;
  }
  return f(Mul::Of{});
}

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
#ifdef PMAPTRAIN_WIDE_LOOPS
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

// How the CPU compares f32 as F does; -1 if F is no comparison.
template <class F>
constexpr int comparison = -1;
template <>
constexpr int comparison<std::equal_to<>> = _CMP_EQ_OQ;
template <>
constexpr int comparison<std::not_equal_to<>> = _CMP_NEQ_UQ;
template <>
constexpr int comparison<std::less<>> = _CMP_LT_OQ;
template <>
constexpr int comparison<std::less_equal<>> = _CMP_LE_OQ;
template <>
constexpr int comparison<std::greater<>> = _CMP_GT_OQ;
template <>
constexpr int comparison<std::greater_equal<>> = _CMP_GE_OQ;

// The compiler makes vectors of 32 bits for the elements of such a result, and then narrows them to bytes, which takes
// three times as long.
template <int comparison, bool ScalarA, bool ScalarB>
void compare(const std::byte* a, const std::byte* b, const std::byte*, std::byte* out, std::size_t n) {
  const float *const x = as<float>(a), *const y = as<float>(b);
  const __m512 x0 = _mm512_set1_ps(*x), y0 = _mm512_set1_ps(*y);
  const __m128i one = _mm_set1_epi8(1);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const __mmask16 holds =
        _mm512_cmp_ps_mask(ScalarA ? x0 : _mm512_loadu_ps(x + i), ScalarB ? y0 : _mm512_loadu_ps(y + i), comparison);
    _mm_storeu_epi8(out + i, _mm_maskz_mov_epi8(holds, one));
  }
  if (i == n) return;
  const auto rest = static_cast<__mmask16>((1U << (n - i)) - 1);
  const __mmask16 holds = _mm512_cmp_ps_mask(ScalarA ? x0 : _mm512_maskz_loadu_ps(rest, x + i),
                                             ScalarB ? y0 : _mm512_maskz_loadu_ps(rest, y + i), comparison);
  _mm_mask_storeu_epi8(out + i, rest, _mm_maskz_mov_epi8(holds, one));
}

template <int comparison>
VectorFunction find_comparison(unsigned scalars) {
  if (scalars == 1) return &compare<comparison, true, false>;
  if (scalars == 2) return &compare<comparison, false, true>;
  return &compare<comparison, false, false>;
}
}  // namespace widest
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

template <class T>
T load(const std::byte* from) {
  return *reinterpret_cast<const T*>(from);
}

template <class T>
void store(std::byte* to, T value) {
  *reinterpret_cast<T*>(to) = value;
}

// Applies the functor F to one element of type T.
template <class F, class T>
VectorFunction single_of() {
  using G = OnElements<F, T>;
  using Bytes = const std::byte*;
  if constexpr (std::is_invocable_v<G, T>) {
    return [](Bytes a, Bytes, Bytes, std::byte* out, std::size_t) { store(out, G{}(load<T>(a))); };
  } else if constexpr (std::is_invocable_v<G, T, T>) {
    return [](Bytes a, Bytes b, Bytes, std::byte* out, std::size_t) { store(out, G{}(load<T>(a), load<T>(b))); };
  } else if constexpr (std::is_invocable_v<G, T, T, T>) {
    return [](Bytes a, Bytes b, Bytes c, std::byte* out, std::size_t) {
      store(out, G{}(load<T>(a), load<T>(b), load<T>(c)));
    };
  } else {
    return nullptr;
  }
}

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
#ifdef PMAPTRAIN_WIDE_LOOPS
  if constexpr (widest::comparison<typename T::Of> >= 0) {
    if (operand == DType::f32 && has_widest_vectors()) {
      return widest::find_comparison<widest::comparison<typename T::Of>>(scalars);
    }
  }
#endif
  const VectorFunction found =
      ask_the_widest([&](auto loops) { return loops.template find<typename T::Of>(operand, scalars); });
  return found != nullptr ? found : portable::find_rare<typename T::Of>(operand, scalars);
}

// The same for one element.
template <class T>
VectorFunction find_single_of(DType operand) {
  if (HasVectorMath<T> && (operand == DType::f32 || operand == DType::bf16)) return find_of<T>(operand, 0);
  using F = typename T::Of;
  switch (operand) {
    case DType::bf16: return single_of<F, bf16>();
    case DType::f32: return single_of<F, float>();
    case DType::f64: return single_of<F, double>();
    case DType::i32: return single_of<F, std::int32_t>();
    case DType::i64: return single_of<F, std::int64_t>();
    default: return nullptr;
  }
}

// Calls find.operator()<T>() if `op` is T, an elementwise op of the list.
template <class... Ops, class Find>
VectorFunction find_among(OpList<Ops...>, const Op& op, Find find) {
  VectorFunction found = nullptr;
  const auto try_one = [&]<class T>() {
    if constexpr (HasFunctor<T>) {
      if (op.as<T>() != nullptr) found = find.template operator()<T>();
    }
  };
  (try_one.template operator()<Ops>(), ...);
  return found;
}

template <class T>
void select_single(const std::byte* p, const std::byte* a, const std::byte* b, std::byte* out, std::size_t) {
  using Any = typename Bits<T>::Any;
  const std::byte* const from = load<std::uint8_t>(p) != 0 ? a : b;
  *reinterpret_cast<Any*>(out) = *reinterpret_cast<const Any*>(from);
}

template <class From, class To>
void convert_single(const std::byte* a, const std::byte*, const std::byte*, std::byte* out, std::size_t) {
  store(out, convert<To>(load<From>(a)));
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
  return find_among(AllOps{}, op, [&]<class T>() { return find_of<T>(operand, scalars); });
}

VectorFunction find_scalar_function(const Op& op, DType operand) {
  if (const auto* cast = op.as<Cast>()) {
    return dispatch(operand, [&]<class From>() {
      return dispatch(cast->dtype, []<class To>() -> VectorFunction { return &convert_single<From, To>; });
    });
  }
  if (op.as<Select>() != nullptr) {
    return dispatch_words(operand, []<class T>() -> VectorFunction { return &select_single<T>; });
  }
  return find_among(AllOps{}, op, [&]<class T>() { return find_single_of<T>(operand); });
}

std::optional<Arithmetic> arithmetic_of(const Op& op) {
  if (op.as<Add>() != nullptr) return Arithmetic::add;
  if (op.as<Sub>() != nullptr) return Arithmetic::sub;
  if (op.as<Mul>() != nullptr) return Arithmetic::mul;
  return {};
}

VectorFunction find_pair(Arithmetic first, Arithmetic second, bool reversed, unsigned scalars) {
  return ask_the_widest([&](auto loops) { return loops.pair(first, second, reversed, scalars); });
}

VectorFunction find_copy(DType dtype, bool scalar) {
  if (scalar) return ask_the_widest([&](auto loops) { return loops.repeat(dtype); });
  return dispatch_words(dtype, []<class T>() -> VectorFunction { return &copy<sizeof(T)>; });
}

}  // namespace pmaptrain::ops
