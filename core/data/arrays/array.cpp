#include "core/data/arrays/array.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "core/base/bf16.h"

namespace pmaptrain::data {
namespace {

static_assert(std::endian::native == std::endian::little, "conversions below reverse big-endian elements only");

template <std::size_t size>
using Word = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<size == 2, std::uint16_t, std::conditional_t<size == 4, std::uint32_t, std::uint64_t>>>;

// IEEE 754 half precision, which converts to f32 exactly.
struct f16 {
  std::uint16_t bits = 0;
  explicit operator float() const {
    const std::uint32_t sign = (bits & 0x8000U) << 16, exponent = bits >> 10 & 0x1fU, mantissa = bits & 0x3ffU;
    if (exponent == 0) {  // zero, or subnormal: mantissa · 2^-24
      const float value = static_cast<float>(mantissa) * 0x1p-24F;
      return sign != 0 ? -value : value;
    }
    const std::uint32_t wide = exponent == 31 ? 0xffU : exponent + 112;
    return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
  }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

template <class T>
T load(const std::byte* from, bool big_endian) {
  Word<sizeof(T)> word;
  std::memcpy(&word, from, sizeof(T));
  if constexpr (sizeof(T) == 2) {
    if (big_endian) word = __builtin_bswap16(word);
  } else if constexpr (sizeof(T) == 4) {
    if (big_endian) word = __builtin_bswap32(word);
  } else if constexpr (sizeof(T) == 8) {
    if (big_endian) word = __builtin_bswap64(word);
  }
  return std::bit_cast<T>(word);
}

template <class F>
decltype(auto) dispatch(Element element, F&& f) {
  switch (element) {
    case Element::boolean: break;
    case Element::u8: return f.template operator()<std::uint8_t>();
    case Element::i8: return f.template operator()<std::int8_t>();
    case Element::u16: return f.template operator()<std::uint16_t>();
    case Element::i16: return f.template operator()<std::int16_t>();
    case Element::u32: return f.template operator()<std::uint32_t>();
    case Element::i32: return f.template operator()<std::int32_t>();
    case Element::u64: return f.template operator()<std::uint64_t>();
    case Element::i64: return f.template operator()<std::int64_t>();
    case Element::bf16: return f.template operator()<bf16>();
    case Element::f16: return f.template operator()<f16>();
    case Element::f32: return f.template operator()<float>();
    case Element::f64: return f.template operator()<double>();
  }
  return f.template operator()<bool>();
}

const std::byte* element_at(const Array& array, std::int64_t index) {
  return array.bytes.data() + static_cast<std::size_t>(index) * size_of(array.element);
}

}  // namespace

std::size_t size_of(Element element) {
  return dispatch(element, []<class T>() { return sizeof(T); });
}

std::string_view name_of(Element element) {
  switch (element) {
    case Element::boolean: return "bool";
    case Element::u8: return "u8";
    case Element::i8: return "i8";
    case Element::u16: return "u16";
    case Element::i16: return "i16";
    case Element::u32: return "u32";
    case Element::i32: return "i32";
    case Element::u64: return "u64";
    case Element::i64: return "i64";
    case Element::bf16: return "bf16";
    case Element::f16: return "f16";
    case Element::f32: return "f32";
    case Element::f64: return "f64";
  }
  return "";
}

std::optional<std::int64_t> checked_bytes(Element element, const Shape& shape) {
  auto bytes = static_cast<std::int64_t>(size_of(element));
  bool zero = false;  // a later dimension of 0 must not hide an overflow before it, nor the reverse
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size == 0) {
      zero = true;
    } else if (__builtin_mul_overflow(bytes, size, &bytes)) {
      return std::nullopt;
    }
  }
  return zero ? 0 : bytes;
}

Shape index_of(std::int64_t position, const Shape& shape) {
  Shape index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = position % shape[d];
    position /= shape[d];
  }
  return index;
}

std::optional<Found> find_beyond_float(const Array& array) {
  if (array.element != Element::f64) return std::nullopt;
  const std::int64_t count = numel(array.shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = load<double>(element_at(array, i), array.big_endian);
    if (std::isfinite(value) && !std::isfinite(static_cast<float>(value))) {
      return Found{index_of(i, array.shape), value};
    }
  }
  return std::nullopt;
}

std::optional<std::size_t> find_nonfinite(std::span<const float> values) {
  constexpr std::int32_t largest_finite = 0x7f7f'ffff;  // as bits, without the sign
  const auto is_bad = [](float value) { return (std::bit_cast<std::int32_t>(value) & 0x7fff'ffff) > largest_finite; };
  std::int32_t bad = 0;  // without a branch the loop runs on vectors
  for (const float value : values) bad |= is_bad(value) ? 1 : 0;
  if (bad == 0) return std::nullopt;
  return static_cast<std::size_t>(std::find_if(values.begin(), values.end(), is_bad) - values.begin());
}

namespace {

template <class To>
void read_numbers(const Array& array, std::int64_t from, std::span<To> to) {
  if (to.empty()) return;
  const std::byte* const start = element_at(array, from);
  const bool is_same = array.element == (std::is_same_v<To, float> ? Element::f32 : Element::f64);
  if (is_same && !array.big_endian) {
    std::memcpy(to.data(), start, to.size_bytes());
    return;
  }
  dispatch(array.element, [&]<class T>() {
    for (std::size_t i = 0; i < to.size(); ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        to[i] = start[i] != std::byte{0} ? To{1} : To{0};
      } else if constexpr (std::is_same_v<T, bf16>) {
        to[i] = static_cast<To>(static_cast<float>(load<T>(start + i * sizeof(T), array.big_endian)));
      } else {
        to[i] = static_cast<To>(load<T>(start + i * sizeof(T), array.big_endian));
      }
    }
  });
}

}  // namespace

void read_floats(const Array& array, std::int64_t from, std::span<float> to) { read_numbers(array, from, to); }
void read_doubles(const Array& array, std::int64_t from, std::span<double> to) { read_numbers(array, from, to); }

std::optional<std::int64_t> read_integer(const Array& array, std::int64_t index) {
  const std::byte* const from = element_at(array, index);
  return dispatch(array.element, [&]<class T>() -> std::optional<std::int64_t> {
    if constexpr (std::is_same_v<T, bool>) {
      return *from != std::byte{0} ? 1 : 0;
    } else if constexpr (std::is_integral_v<T>) {
      const T value = load<T>(from, array.big_endian);
      if constexpr (std::is_same_v<T, std::uint64_t>) {
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return std::nullopt;
      }
      return static_cast<std::int64_t>(value);
    } else {
      assert(false);
      return std::nullopt;
    }
  });
}

}  // namespace pmaptrain::data
