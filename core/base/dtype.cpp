#include "core/base/dtype.h"

#include <array>

namespace pmaptrain {
namespace {

constexpr std::array dtypes{DType::bf16, DType::f32, DType::f64, DType::i32,
                            DType::i64,  DType::u8,  DType::u32, DType::boolean};
static_assert(dtypes.size() == static_cast<std::size_t>(DType::boolean) + 1, "boolean is the last");

}  // namespace

std::size_t size_of(DType dtype) {
  return dispatch(dtype, []<class T>() { return sizeof(T); });
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "bf16";
    case DType::f32: return "f32";
    case DType::f64: return "f64";
    case DType::i32: return "i32";
    case DType::i64: return "i64";
    case DType::u8: return "u8";
    case DType::u32: return "u32";
    case DType::boolean: return "bool";
  }
  return {};
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : dtypes) {
    if (to_string(dtype) == text) return dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return dispatch(dtype, []<class T>() { return FloatingElement<T>; });
}

}  // namespace pmaptrain
