// Runs one op's kernels on host arrays: its reference in f32 and f64, and its CPU kernel where it has one.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/cpu.h"
#include "tests/catch.h"

namespace pmaptrain::test {

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::i64;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::u32;
  return DType::i32;
}

// Deterministic values in [-1, 1) that look random.
inline std::vector<float> noise(std::int64_t count, std::uint32_t seed) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = seed * 2654435761u + 12345u;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1.0p-23F - 1.0F;
  }
  return values;
}

template <class Op>
Type result_type(const Op& op, const std::vector<Type>& operands) {
  const Mesh mesh;
  return op.infer({.mesh = mesh, .operands = operands})[0];
}

// "message | help" of the TypeError that the type rule throws; empty where it accepts.
template <class Op>
std::string refusal(const Op& op, const std::vector<Type>& operands) {
  try {
    result_type(op, operands);
  } catch (const TypeError& error) {
    return std::string(error.what()) + " | " + error.help;
  }
  return {};
}

// Several devices' worth of operands: stacked ones hold one slice for each device.
struct Case {
  std::vector<Shape> shapes;
  std::int64_t devices = 1;
  std::vector<bool> stacked = {true, true};

  std::vector<Type> types(DType dtype) const {
    std::vector<Type> list;
    for (const Shape& shape : shapes) list.push_back({dtype, shape, {}});
    return list;
  }
  std::vector<std::vector<float>> operands(std::uint32_t seed = 1) const {
    std::vector<std::vector<float>> list;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const auto slices = stacked[i] ? devices : 1;
      list.push_back(noise(numel(shapes[i]) * slices, seed + static_cast<std::uint32_t>(i)));
    }
    return list;
  }
  CpuRequest request(const std::vector<Type>& operand_types, const std::vector<Type>& results) const {
    return {operand_types, results, devices, std::vector<bool>(stacked.begin(), stacked.begin() + std::ssize(shapes))};
  }
};

template <class T>
std::vector<T> run_kernel(CpuKernel& kernel, const std::vector<std::vector<T>>& operands, std::int64_t result_size) {
  std::vector<T> result(static_cast<std::size_t>(result_size), T(77));  // a kernel that leaves elements is found
  std::vector<const std::byte*> from;
  for (const auto& operand : operands) from.push_back(reinterpret_cast<const std::byte*>(operand.data()));
  std::byte* to[] = {reinterpret_cast<std::byte*>(result.data())};
  struct Free {
    void operator()(std::byte* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  const std::unique_ptr<std::byte, Free> scratch(
      static_cast<std::byte*>(::operator new (kernel.scratch_bytes() + 64, std::align_val_t{64})));
  std::memset(scratch.get(), 0xff, kernel.scratch_bytes() + 64);  // NaN, where it is read before it is written
  kernel.run({from.data(), to, scratch.get()});
  return result;
}

// The reference kernel in T on the same numbers.
template <class T, class Op>
std::vector<T> run_reference(const Op& op, const Case& c, const std::vector<std::vector<float>>& operands) {
  const auto types = c.types(dtype_of<T>());
  const std::vector<Type> results = {result_type(op, types)};
  std::vector<std::vector<T>> values;
  for (const auto& operand : operands) values.emplace_back(operand.begin(), operand.end());
  const auto kernel = make_reference_kernel(
      std::make_shared<Op>(op),
      [](const void* self, const ReferenceCall& call) { static_cast<const Op*>(self)->reference(call); },
      c.request(types, results));
  return run_kernel(*kernel, values, numel(results[0]) * c.devices);
}

// The op's own CPU kernel; null where it leaves the request to the reference.
template <class Op>
std::unique_ptr<CpuKernel> cpu_kernel(const Op& op, const Case& c) {
  use_one_thread_in_libraries();
  const auto types = c.types(DType::f32);
  const std::vector<Type> results = {result_type(op, types)};
  return op.cpu(c.request(types, results));
}

// The greatest distance from the f64 reference, in units of what rounding explains for sums of `length` terms of
// magnitude one (1 is usual, 4 is what tests allow, 100 is wrong); of the CPU kernel where there is one, else of the
// f32 reference.
template <class Op>
double distance(const Op& op, const Case& c, std::int64_t length) {
  const auto operands = c.operands();
  const auto expected = run_reference<double>(op, c, operands);
  const auto kernel = cpu_kernel(op, c);
  const auto found =
      kernel ? run_kernel(*kernel, operands, std::ssize(expected)) : run_reference<float>(op, c, operands);
  const double unit = 1e-6 * std::sqrt(static_cast<double>(length) + 1.0);
  double worst = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(found[i]) - expected[i]) / unit;
    if (!(error <= worst)) worst = error;  // NaN is the worst
  }
  return worst;
}

// What a kernel does with the devices of a request: it makes one batch of them, for the library to take in one call, or
// computes each apart.
enum class Devices { merged, apart };

// Whether the CPU kernel, which takes the devices as stated, gives the bits of each device on its own.
template <class Op>
bool same_bits_alone(const Op& op, const Case& c, Devices devices) {
  const auto together = cpu_kernel(op, c);
  Case one = c;
  one.devices = 1;
  const auto alone = cpu_kernel(op, one);
  if (!together || !alone) return false;
  const auto primitives = [](const CpuKernel& kernel) {
    return kernel.library_calls() - static_cast<std::int64_t>(kernel.layout_changes().size());
  };
  const bool merged = primitives(*alone) > 0 && primitives(*together) == primitives(*alone);
  CHECK(merged == (devices == Devices::merged));
  const auto operands = c.operands();
  const auto size = numel(result_type(op, c.types(DType::f32)));
  const auto expected = run_kernel(*together, operands, size * c.devices);
  for (std::int64_t d = 0; d < c.devices; ++d) {
    std::vector<std::vector<float>> slices;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto at = operands[i].begin() + (c.stacked[i] ? d * numel(c.shapes[i]) : 0);
      slices.emplace_back(at, at + numel(c.shapes[i]));
    }
    const auto found = run_kernel(*alone, slices, size);
    if (std::memcmp(found.data(), expected.data() + d * size, found.size() * sizeof(float)) != 0) return false;
  }
  return true;
}

}  // namespace pmaptrain::test
