#include "core/ops/fused/gpu_text.h"

#include <fmt/format.h>

#include <utility>

#include "core/ops/cast/cast.h"
#include "core/ops/constant/constant.h"
#include "core/ops/elementwise/compare.h"
#include "core/ops/reduce/reduce.h"

namespace pmaptrain::ops {
namespace {

// The functor of an op. Its name derives from the op's name: is_finite has IsFiniteOf.
std::string functor_text(std::string_view op) {
  static constexpr std::pair<std::string_view, std::string_view> comparisons[] = {
      {Eq::name, "std::equal_to<>"},   {Ne::name, "std::not_equal_to<>"}, {Lt::name, "std::less<>"},
      {Le::name, "std::less_equal<>"}, {Gt::name, "std::greater<>"},      {Ge::name, "std::greater_equal<>"}};
  for (const auto& [name, functor] : comparisons) {
    if (name == op) return std::string(functor);
  }
  std::string text;
  bool starts_word = true;
  for (const char c : op) {
    if (c != '_') text += starts_word ? static_cast<char>(c - 'a' + 'A') : c;
    starts_word = c == '_';
  }
  return text + "Of";
}

}  // namespace

std::string_view type_text(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "bf16";
    case DType::f32: return "float";
    case DType::f64: return "double";
    case DType::i32: return "std::int32_t";
    case DType::i64: return "std::int64_t";
    case DType::u8: return "std::uint8_t";
    case DType::u32: return "std::uint32_t";
    case DType::boolean: break;
  }
  return "bool";
}

std::string_view word_text(DType dtype) {
  switch (size_of(dtype)) {
    case 1: return "std::uint8_t";
    case 2: return "std::uint16_t";
    case 4: return "std::uint32_t";
    default: return "std::uint64_t";
  }
}

std::uint64_t bits_of(DType dtype, double value) {
  const Type one{dtype, {}, {}};
  std::uint64_t bits = 0;
  const Array element{&one, reinterpret_cast<std::byte*>(&bits)};
  Constant{dtype, {}, value}.reference({{}, {&element, 1}});
  return bits;
}

std::string element_text(const Op& op, DType dtype, std::string_view operands) {
  if (const auto value = splat_of(op)) {
    return fmt::format("element<{}>({:#x})", type_text(dtype), bits_of(dtype, *value));
  }
  if (op.rules().view) return std::string(operands);
  if (op.as<Cast>() != nullptr) return fmt::format("convert<{}>({})", type_text(dtype), operands);
  if (op.as<Select>() != nullptr) return fmt::format("select({})", operands);
  return fmt::format("apply<{}>({})", functor_text(op.name()), operands);
}

ReductionText reduction_text(const Op& op, DType dtype, std::string_view element) {
  const std::string type(type_text(dtype == DType::bf16 ? DType::f32 : dtype));
  return {op.as<ReduceSum>() != nullptr ? "SumReducer" : "MaxReducer", type,
          fmt::format("static_cast<{}>({})", type, element)};
}

ReductionText joined(const std::vector<ReductionText>& reductions) {
  ReductionText all = reductions.back();
  for (std::size_t i = reductions.size() - 1; i-- > 0;) {
    const ReductionText& one = reductions[i];
    all.reducer = fmt::format("PairReducer<{}, {}>", one.reducer, all.reducer);
    all.type = fmt::format("Pair<{}, {}>", one.type, all.type);
    all.element = fmt::format("{}{{{}, {}}}", all.type, one.element, all.element);
  }
  return all;
}

std::string result_text(std::string_view pair, std::size_t i, std::size_t count) {
  std::string text(pair);
  for (std::size_t k = 0; k < i; ++k) text += ".second";
  return i + 1 < count ? text + ".first" : text;
}

}  // namespace pmaptrain::ops
