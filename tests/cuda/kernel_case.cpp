#include "tests/cuda/kernel_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>

#include "core/ops/all.h"
#include "tests/catch.h"
#include "tests/cuda/on_gpu.h"
#include "tests/emulated_gpu/host_kernels.h"
#include "tests/gpu/gpus.h"

namespace pmaptrain::test {
namespace {

template <class T>
T random_value(std::mt19937& random, bool special) {
  const int whole = static_cast<int>(random() % 17) - 8;
  const bool is_special = special && random() % 29 == 0;
  if constexpr (std::is_same_v<T, bool>) {
    return whole > 0;
  } else if constexpr (FloatingElement<T>) {
    if (is_special) {
      const float values[] = {-0.0F,
                              0.0F,
                              std::numeric_limits<float>::quiet_NaN(),
                              std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(),
                              1e-39F};
      return static_cast<T>(values[random() % 6]);
    }
    const bool fraction = random() % 2 == 0;
    return static_cast<T>(fraction ? static_cast<float>(random()) * 0x1.0p-31F - 1.0F : static_cast<float>(whole));
  } else {
    if (is_special) return random() % 2 == 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
    return static_cast<T>(whole);
  }
}

// Of an operand, or of a result of all devices, with its own memory, so that the address sanitizer sees its bounds.
std::vector<const std::byte*> addresses(const std::vector<Bytes>& arrays) {
  std::vector<const std::byte*> list;
  for (const Bytes& array : arrays) list.push_back(array.data());
  return list;
}

std::vector<Bytes> poisoned_results(const KernelCase& c) {
  std::vector<Bytes> results;
  for (const Type& type : c.results) {
    results.emplace_back(bytes(type) * static_cast<std::size_t>(c.devices), std::byte{0xff});
  }
  return results;
}

std::vector<std::byte*> writable(std::vector<Bytes>& arrays) {
  std::vector<std::byte*> list;
  for (Bytes& array : arrays) list.push_back(array.data());
  return list;
}

std::vector<Bytes> run_launches(const KernelCase& c, const GpuKernel& kernel, ThreadOrder order) {
  std::vector<Bytes> results = poisoned_results(c);
  Bytes scratch(kernel.scratch_bytes, std::byte{0xff});
  const auto from = addresses(c.values);
  const auto to = writable(results);
  unsigned seed = 1;
  for (const GpuCommand& command : kernel.commands) {
    const auto* launch = std::get_if<GpuLaunch>(&command);
    REQUIRE(launch != nullptr);
    GpuLaunch some = *launch;
    // A kernel takes any number of blocks, each of which then has more to do.
    if (order == ThreadOrder::shuffled) some.blocks[0] = std::min(some.blocks[0], 2U);
    launch_on_host(some, {from, to, scratch.data()}, order, seed++);
  }
  return results;
}

template <class T>
bool same(T found, T expected, double tolerance) {
  if constexpr (FloatingElement<T>) {
    if (found != found || expected != expected) return found != found && expected != expected;
    if (tolerance > 0 && found != expected) {
      const auto a = static_cast<double>(static_cast<float>(found)),
                 b = static_cast<double>(static_cast<float>(expected));
      return std::isfinite(b) && std::abs(a - b) <= tolerance * std::abs(b);
    }
  }
  return std::memcmp(&found, &expected, sizeof(T)) == 0;
}

}  // namespace

Bytes random_values(DType dtype, std::int64_t count, unsigned seed, bool special) {
  std::mt19937 random(seed);
  return dispatch(dtype, [&]<class T>() {
    Bytes values(static_cast<std::size_t>(count) * sizeof(T));
    for (std::size_t i = 0; i < values.size(); i += sizeof(T)) {
      const T value = random_value<T>(random, special);
      std::memcpy(values.data() + i, &value, sizeof(T));
    }
    return values;
  });
}

void KernelCase::infer_results() {
  if (stacked.empty()) stacked.assign(operands.size(), true);
  const Mesh mesh;
  if (results.empty()) results = op.infer({.mesh = mesh, .operands = operands});
}

void KernelCase::complete(unsigned seed) {
  infer_results();
  values.resize(operands.size());
  // A library, or a product of tiles, may multiply zeros beside the operands, which the references skip. A library may
  // flush subnormals.
  const GpuKernel kernel = make_gpu_kernel(op, request());
  const bool special = !kernel.is_by_library() && !kernel.is_on_tensor_cores();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::int64_t count = numel(operands[i]) * (stacked[i] ? devices : 1);
    const std::size_t size = static_cast<std::size_t>(count) * size_of(operands[i].dtype);
    if (values[i].empty()) {
      values[i] = random_values(operands[i].dtype, count, seed + static_cast<unsigned>(i), special);
    }
    values[i].resize(size);
  }
}

GpuRequest KernelCase::request() const {
  return {operands, results, devices, stacked, region, types, tf32, deterministic};
}

std::vector<Bytes> run_reference(const KernelCase& c) {
  CpuRequest request{c.operands, c.results, c.devices, c.stacked};
  request.region = c.region;
  request.types = c.types;
  const auto kernel = make_cpu_kernel(c.op, request, KernelChoice::reference);
  std::vector<Bytes> results = poisoned_results(c);
  Bytes scratch(kernel->scratch_bytes() + 64);
  void* aligned = scratch.data();
  std::size_t space = scratch.size();
  std::align(64, kernel->scratch_bytes(), aligned, space);
  kernel->run({addresses(c.values).data(), writable(results).data(), static_cast<std::byte*>(aligned)});
  return results;
}

std::string difference(const std::vector<Type>& types, const std::vector<Bytes>& found,
                       const std::vector<Bytes>& expected, double tolerance) {
  for (std::size_t r = 0; r < types.size(); ++r) {
    const auto text = dispatch(types[r].dtype, [&]<class T>() -> std::string {
      for (std::size_t at = 0; at < expected[r].size(); at += sizeof(T)) {
        T a, b;
        std::memcpy(&a, found[r].data() + at, sizeof(T));
        std::memcpy(&b, expected[r].data() + at, sizeof(T));
        if (same(a, b, tolerance)) continue;
        return fmt::format("element {} of result {}: {}, expected {}", at / sizeof(T), r, static_cast<double>(a),
                           static_cast<double>(b));
      }
      return {};
    });
    if (!text.empty()) return text;
  }
  return {};
}

void check_launches(const Op& op, const std::vector<Type>& operands, const std::vector<Bytes>& values,
                    double tolerance) {
  const unsigned choices = 1U << operands.size();
  for (const std::int64_t devices : {1, 3}) {
    for (unsigned choice = 0; choice < (devices == 1 ? 1 : choices); ++choice) {
      KernelCase c{op, operands, devices};
      for (std::size_t i = 0; i < operands.size(); ++i) {
        c.stacked.push_back((choice >> i & 1U) == 0);
        c.values.emplace_back();
        if (i >= values.size()) continue;
        // Each device has the given values in another order.
        Bytes next = values[i];
        for (std::int64_t d = 0; d < (c.stacked[i] ? devices : 1) && !next.empty(); ++d) {
          c.values[i].insert(c.values[i].end(), next.begin(), next.end());
          std::rotate(next.begin(), next.begin() + std::ssize(next) / numel(operands[i]), next.end());
        }
      }
      check_launches(std::move(c), tolerance);
    }
  }
}

void check_launches(KernelCase c, double tolerance) {
  c.complete(7);
  const std::vector<Bytes> expected = run_reference(c);
  check_on_gpu(c, expected, tolerance);
  if (tests_use_cuda()) return;
  const GpuKernel kernel = make_gpu_kernel(c.op, c.request());
  std::vector<Bytes> first;
  for (const ThreadOrder order : {ThreadOrder::forward, ThreadOrder::reverse, ThreadOrder::shuffled}) {
    const std::vector<Bytes> found = run_launches(c, kernel, order);
    std::string differs;
    if (!kernel.is_on_tensor_cores()) {
      differs = difference(c.results, found, expected, tolerance);
    } else if (first.empty()) {
      differs = beyond_rounding(c.results, first = found, expected);
    } else {
      differs = difference(c.results, found, first);
    }
    expect_none(differs, c, fmt::format("on the host, order of threads {}", static_cast<int>(order)));
  }
}

std::string to_string(const KernelCase& c) {
  std::string text = pmaptrain::to_string(c.op);
  const Mesh mesh;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    text += (i == 0 ? " of " : ", ") + pmaptrain::to_string(c.operands[i], mesh);
    if (c.devices > 1 && !c.stacked[i]) text += " for all";
  }
  return text + fmt::format(", {} logical device{}", c.devices, c.devices == 1 ? "" : "s");
}

void expect_none(const std::string& differs, const KernelCase& c, const std::string& where) {
  if (differs.empty()) {
    SUCCEED();
  } else {
    FAIL_CHECK(to_string(c) << ", " << where << ": " << differs);
  }
}

bool is_by_library(const KernelCase& c) { return make_gpu_kernel(c.op, c.request()).is_by_library(); }

}  // namespace pmaptrain::test
