// Runs an op's GPU kernel on the host and compares it with the op's reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/graph/op.h"
#include "core/kernel/gpu.h"

namespace pmaptrain::test {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

inline constexpr DType all_dtypes[] = {DType::bf16, DType::f32, DType::f64, DType::i32,
                                       DType::i64,  DType::u8,  DType::u32, DType::boolean};
inline constexpr DType floating_types[] = {DType::bf16, DType::f32, DType::f64};
inline constexpr DType number_types[] = {DType::bf16, DType::f32, DType::f64, DType::i32,
                                         DType::i64,  DType::u8,  DType::u32};

// Values of a type in random order: small whole numbers, fractions where it has them, now and then a special one (-0,
// NaN, an infinity, a number that integers wrap at).
Bytes random_values(DType dtype, std::int64_t count, unsigned seed, bool special = true);

// One op on several devices, of which a stacked operand has a slice each.
struct KernelCase {
  Op op;
  std::vector<Type> operands;
  std::int64_t devices = 1;
  std::vector<bool> stacked = {};  // by operand; all of them where nothing is said
  std::vector<Bytes> values = {};  // by operand; random where nothing is said, and for libraries finite
  const Region* region = nullptr;
  std::vector<Type> types = {};             // of the region's values
  std::vector<Type> results = {};           // the type rule's where nothing is said
  bool tf32 = false, deterministic = true;  // as in GpuRequest

  // Set the members that are empty: one all but `values`, the other `values` too.
  void infer_results();
  void complete(unsigned seed);
  GpuRequest request() const;
};

// By result, of all devices.
std::vector<Bytes> run_reference(const KernelCase& c);

// The first element at which they differ, as text; empty where they are the same. Any NaN is equal to any other. A
// tolerance is relative, for floating types.
std::string difference(const std::vector<Type>& types, const std::vector<Bytes>& found,
                       const std::vector<Bytes>& expected, double tolerance = 0);

// The op, the types of its operands and the number of logical devices.
std::string to_string(const KernelCase& c);

// A failure that says which case it is, and does not end the test; none where `differs` is empty.
void expect_none(const std::string& differs, const KernelCase& c, const std::string& where);

// CHECKs that the launches of the op's kernel give the bits of the reference on a GPU (tests/gpu/gpus.h), and on the
// host in every order of threads: on one logical device and on three, with every choice of stacked operands.
void check_launches(const Op& op, const std::vector<Type>& operands, const std::vector<Bytes>& values = {},
                    double tolerance = 0);
// The same for the devices and stacked operands of one case.
void check_launches(KernelCase c, double tolerance = 0);

// Whether gpu() leaves the equation to a library.
bool is_by_library(const KernelCase& c);

}  // namespace pmaptrain::test
