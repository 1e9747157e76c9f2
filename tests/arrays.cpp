#include "tests/arrays.h"

#include <algorithm>
#include <cmath>

#include "core/ops/all.h"
#include "core/ops/cast/cast.h"
#include "tests/catch.h"

namespace pmaptrain::test {
namespace {

std::vector<Type> types_of_arrays(const std::vector<HostArray>& arrays) {
  std::vector<Type> types;
  for (const HostArray& a : arrays) types.push_back(a.type);
  return types;
}

std::vector<Type> infer(const Op& op, const std::vector<Type>& operands) {
  const Mesh mesh;
  return op.infer({.mesh = mesh, .operands = operands});
}

}  // namespace

HostArray counting(DType dtype, Shape shape) {
  HostArray result{{dtype, std::move(shape), {}}, {}};
  result.bytes.resize(bytes(result.type));
  dispatch(dtype, [&]<class T>() {
    for (std::int64_t i = 0; i < numel(result.type); ++i) {
      const auto value = static_cast<T>(i);
      std::memcpy(result.bytes.data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
    }
  });
  return result;
}

std::vector<HostArray> apply_all(const Op& op, const std::vector<HostArray>& operands) {
  const Mesh mesh;
  const std::vector<Type> types = types_of_arrays(operands);
  std::vector<HostArray> results;
  for (const Type& type : op.infer({.mesh = mesh, .operands = types})) {
    results.push_back({type, std::vector<std::byte>(bytes(type), std::byte{0x4d})});  // what a kernel leaves is found
  }
  std::vector<ConstArray> from;
  for (const HostArray& a : operands) from.push_back({&a.type, a.bytes.data()});
  std::vector<Array> to;
  for (HostArray& a : results) to.push_back({&a.type, a.bytes.data()});
  kernels_of(op).reference(op.data(), {from, to});
  return results;
}

HostArray apply(const Op& op, const std::vector<HostArray>& operands) { return apply_all(op, operands).front(); }

HostArray apply_stacked(const Op& op, const std::vector<HostArray>& operands, std::int64_t devices,
                        const std::vector<bool>& stacked, std::string* implementation) {
  return apply_all_stacked(op, operands, devices, stacked, implementation).front();
}

std::vector<HostArray> apply_all_stacked(const Op& op, const std::vector<HostArray>& operands, std::int64_t devices,
                                         const std::vector<bool>& stacked, std::string* implementation) {
  use_one_thread_in_libraries();
  const std::vector<Type> types = types_of_arrays(operands), result_types = infer(op, types);
  std::vector<HostArray> results;
  std::vector<std::byte*> to;
  for (const Type& type : result_types) {
    results.push_back({type, std::vector<std::byte>(bytes(type) * static_cast<std::size_t>(devices), std::byte{0x4d})});
    to.push_back(results.back().bytes.data());
  }
  const auto kernel = make_cpu_kernel(op, {types, result_types, devices, stacked});
  if (implementation != nullptr) *implementation = kernel->implementation();
  std::vector<std::byte> scratch(kernel->scratch_bytes() + 64);
  auto* aligned = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64) % 64;
  std::vector<const std::byte*> from;
  for (const HostArray& a : operands) from.push_back(a.bytes.data());
  kernel->run({from.data(), to.data(), aligned});
  return results;
}

HostArray in_wider(const HostArray& x) {
  if (!is_floating(x.type.dtype)) return x;
  if (x.type.dtype == DType::bf16) return apply(ops::Cast{DType::f32}, {x});
  const std::vector<float> values = x.as<float>();
  return f64(x.type.shape, {values.begin(), values.end()});
}
std::vector<HostArray> kernel_results(const Op& op, const std::vector<HostArray>& operands,
                                      std::string* implementation) {
  return apply_all_stacked(op, operands, 1, std::vector<bool>(operands.size(), true), implementation);
}

double worst_error(const std::vector<HostArray>& found, const std::vector<HostArray>& expected) {
  double worst = 0;
  for (std::size_t r = 0; r < found.size(); ++r) {
    const std::vector<float> a = found[r].as<float>();
    const std::vector<double> b = expected[r].as<double>();
    REQUIRE(a.size() == b.size());
    double largest = 1;
    for (const double value : b) largest = std::max(largest, std::abs(value));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double error = std::abs(static_cast<double>(a[i]) - b[i]) / largest;
      if (!(error <= worst)) worst = error;  // NaN is the worst
    }
  }
  return worst;
}

std::string refusal_of(const Op& op, const std::vector<Type>& operands) {
  try {
    infer(op, operands);
  } catch (const TypeError& error) {
    return std::string(error.what()) + (error.help.empty() ? "" : " (" + error.help + ")");
  }
  return "accepted";
}

}  // namespace pmaptrain::test
