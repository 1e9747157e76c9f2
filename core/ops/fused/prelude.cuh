// The text that precedes the functors in generated kernels: parts of the standard library that NVRTC does not have. It
// is only used as text (core/ops/fused/gpu_source.h).
#if defined(__CUDACC_RTC__)

#define SHARED(type, name, count) __shared__ type name[count]
#define UNROLL _Pragma("unroll")
#define PRAGMA(text) _Pragma(#text)
#define UNROLL_BY(count) PRAGMA(unroll count)

namespace std {

using size_t = decltype(sizeof(0));
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;

template <class A, class B>
constexpr bool is_same_v = false;
template <class A>
constexpr bool is_same_v<A, A> = true;
template <class A, class... B>
constexpr bool is_one_of = (is_same_v<A, B> || ...);
template <class T>
constexpr bool is_floating_point_v = is_one_of<T, float, double>;
template <class T>
constexpr bool is_signed_v = is_floating_point_v<T> || is_one_of<T, signed char, short, int, long, long long>;
template <class T>
constexpr bool is_unsigned_v =
    is_one_of<T, bool, unsigned char, unsigned short, unsigned, unsigned long, unsigned long long>;
template <class T>
constexpr bool is_integral_v = is_one_of<T, char> || is_unsigned_v<T> || (is_signed_v<T> && !is_floating_point_v<T>);
template <class T>
constexpr bool is_arithmetic_v = is_integral_v<T> || is_floating_point_v<T>;
template <class T>
constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class T>
constexpr bool is_trivial_v = __is_trivial(T);
template <class F, class... T>
constexpr bool is_invocable_v = requires(F f, T... x) {
  f(x...);
};

template <class A, class B>
concept same_as = is_same_v<A, B>;
template <class T>
concept integral = is_integral_v<T>;

template <bool first, class A, class B>
struct conditional {
  using type = A;
};
template <class A, class B>
struct conditional<false, A, B> {
  using type = B;
};
template <bool first, class A, class B>
using conditional_t = typename conditional<first, A, B>::type;
template <class T>
using make_unsigned_t =
    conditional_t<sizeof(T) == 1, uint8_t,
                  conditional_t<sizeof(T) == 2, uint16_t, conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

template <class To, class From>
constexpr To bit_cast(const From& from) {
  return __builtin_bit_cast(To, from);
}

// bf16 has its own specialization.
template <class T>
struct numeric_limits {
  static constexpr bool is_specialized = true;
  static constexpr T max() { return is_signed_v<T> ? T((make_unsigned_t<T>(1) << (8 * sizeof(T) - 1)) - 1) : T(-1); }
  static constexpr T min() { return is_signed_v<T> ? T(-max() - 1) : T(0); }
  static constexpr T lowest() { return min(); }
};
template <>
struct numeric_limits<float> {
  static constexpr bool is_specialized = true;
  static constexpr float infinity() { return __builtin_bit_cast(float, 0x7f800000u); }
};
template <>
struct numeric_limits<double> {
  static constexpr bool is_specialized = true;
  static constexpr double infinity() { return __builtin_bit_cast(double, 0x7ff0000000000000ull); }
};

#define PMAPTRAIN_FUNCTION(name)                      \
  inline float name(float x) { return ::name##f(x); } \
  inline double name(double x) { return ::name(x); }
PMAPTRAIN_FUNCTION(floor)
PMAPTRAIN_FUNCTION(exp)
PMAPTRAIN_FUNCTION(expm1)
PMAPTRAIN_FUNCTION(log)
PMAPTRAIN_FUNCTION(log1p)
PMAPTRAIN_FUNCTION(sin)
PMAPTRAIN_FUNCTION(cos)
PMAPTRAIN_FUNCTION(tanh)
PMAPTRAIN_FUNCTION(erf)
PMAPTRAIN_FUNCTION(sqrt)
#undef PMAPTRAIN_FUNCTION
inline float abs(float x) { return ::fabsf(x); }
inline double abs(double x) { return ::fabs(x); }
inline float fmod(float x, float y) { return ::fmodf(x, y); }
inline double fmod(double x, double y) { return ::fmod(x, y); }
inline float pow(float x, float y) { return ::powf(x, y); }
inline double pow(double x, double y) { return ::pow(x, y); }

#define PMAPTRAIN_COMPARISON(name, sign)        \
  template <class Any = void>                   \
  struct name {                                 \
    template <class T>                          \
    constexpr bool operator()(T a, T b) const { \
      return a sign b;                          \
    }                                           \
  };
PMAPTRAIN_COMPARISON(equal_to, ==)
PMAPTRAIN_COMPARISON(not_equal_to, !=)
PMAPTRAIN_COMPARISON(less, <)
PMAPTRAIN_COMPARISON(less_equal, <=)
PMAPTRAIN_COMPARISON(greater, >)
PMAPTRAIN_COMPARISON(greater_equal, >=)
#undef PMAPTRAIN_COMPARISON

}  // namespace std

#else

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

#include "core/kernel/simt.h"

#define UNROLL_BY(count)

#endif
