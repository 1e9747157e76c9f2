#include "core/base/dtype.h"

#include <array>

namespace pmaptrain {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr std::array rows{
    Row{DType::f32, "f32", 4}, Row{DType::f64, "f64", 8}, Row{DType::i32, "i32", 4},      Row{DType::i64, "i64", 8},
    Row{DType::u8, "u8", 1},   Row{DType::u32, "u32", 4}, Row{DType::boolean, "bool", 1},
};

const Row& row(DType dtype) { return rows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::size_t size_of(DType dtype) { return row(dtype).size; }

std::string_view to_string(DType dtype) { return row(dtype).name; }

std::optional<DType> parse_dtype(std::string_view text) {
  for (const Row& candidate : rows) {
    if (candidate.name == text) return candidate.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

}  // namespace pmaptrain
