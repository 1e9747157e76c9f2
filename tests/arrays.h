// Arrays of any element type in tests, and single ops run on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "core/graph/op.h"

namespace pmaptrain::test {

inline constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

// The same on every device.
inline Type type(DType dtype, Shape shape) { return {dtype, std::move(shape), {}}; }

struct HostArray {
  Type type;
  std::vector<std::byte> bytes;

  // The elements; booleans as std::uint8_t.
  template <class T>
  std::vector<T> as() const {
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
};

template <class T>
HostArray array(DType dtype, Shape shape, const std::vector<T>& values) {
  HostArray result{{dtype, std::move(shape), {}}, std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}
inline HostArray f32(Shape shape, const std::vector<float>& v) { return array(DType::f32, std::move(shape), v); }
inline HostArray f64(Shape shape, const std::vector<double>& v) { return array(DType::f64, std::move(shape), v); }
inline HostArray i32(Shape shape, const std::vector<std::int32_t>& v) { return array(DType::i32, std::move(shape), v); }
inline HostArray i64(Shape shape, const std::vector<std::int64_t>& v) { return array(DType::i64, std::move(shape), v); }
inline HostArray u8(Shape shape, const std::vector<std::uint8_t>& v) { return array(DType::u8, std::move(shape), v); }
inline HostArray u32(Shape shape, const std::vector<std::uint32_t>& v) {
  return array(DType::u32, std::move(shape), v);
}
inline HostArray boolean(Shape shape, const std::vector<std::uint8_t>& v) {
  return array(DType::boolean, std::move(shape), v);
}

// 0, 1, 2, ... in a shape.
HostArray counting(DType dtype, Shape shape);

// The op's reference on one device. Types are checked; TypeError comes through.
HostArray apply(const Op& op, const std::vector<HostArray>& operands);
// The same with all results.
std::vector<HostArray> apply_all(const Op& op, const std::vector<HostArray>& operands);

// The op's best CPU kernel in one call for `devices` devices. Operands that are stacked hold a slice for each device;
// types are those of one device. `implementation`, where given, gets the kernel's name.
HostArray apply_stacked(const Op& op, const std::vector<HostArray>& operands, std::int64_t devices,
                        const std::vector<bool>& stacked, std::string* implementation = nullptr);
std::vector<HostArray> apply_all_stacked(const Op& op, const std::vector<HostArray>& operands, std::int64_t devices,
                                         const std::vector<bool>& stacked, std::string* implementation = nullptr);

// The same of one device, whose operands are its own.
std::vector<HostArray> kernel_results(const Op& op, const std::vector<HostArray>& operands,
                                      std::string* implementation = nullptr);

// bf16 as f32, and f32 as f64; others as they are.
HostArray in_wider(const HostArray& x);

// The largest difference of f32 from f64 results, as a part of the largest element of a result or of 1.
double worst_error(const std::vector<HostArray>& found, const std::vector<HostArray>& expected);

// "message (help)" of the TypeError that the op throws for these operand types, or "accepted".
std::string refusal_of(const Op& op, const std::vector<Type>& operands);

}  // namespace pmaptrain::test
