#include "tests/cuda/on_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <variant>

#include "core/ops/all.h"
#include "core/ops/attention/attention.h"
#include "core/ops/random/random.h"
#include "core/ops/recurrent/recurrent.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"

namespace pmaptrain::test {
namespace {

using gpu::Stream;

// The device of all cases, which run on one thread.
class Runner {
 public:
  std::vector<Bytes> run(const KernelCase& c) {
    const GpuRequest request = c.request();
    const GpuKernel kernel = make_gpu_kernel(c.op, request);
    const gpu::PreparedKernel prepared = device_->prepare(c.op, request, kernel);

    // Operands, results and scratch memory one after another, in the same places of the host and of the device.
    std::size_t end = 0;
    const auto place = [&end](std::size_t bytes) { return std::exchange(end, end + (bytes + 256) / 256 * 256); };
    std::vector<std::size_t> operands, results;
    for (const Bytes& value : c.values) operands.push_back(place(value.size()));
    std::vector<Bytes> found;
    for (const Type& type : c.results) {
      found.emplace_back(bytes(type) * static_cast<std::size_t>(c.devices));
      results.push_back(place(found.back().size()));
    }
    const std::size_t scratch = place(kernel.scratch_bytes);
    std::byte* const memory = at_least(end, memory_, &gpu::Device::allocate);
    std::byte* const host = at_least(end, host_, &gpu::Device::pinned);

    std::memset(host, 0xff, end);
    gpu::Accesses accesses;
    std::vector<const std::byte*> from;
    std::vector<std::byte*> to;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      std::copy(c.values[i].begin(), c.values[i].end(), host + operands[i]);
      from.push_back(memory + operands[i]);
      accesses.reads.push_back({from.back(), c.values[i].size()});
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      to.push_back(memory + results[i]);
      accesses.writes.push_back({to.back(), found[i].size()});
    }
    std::byte* const workspace = at_least(prepared.workspace, workspace_, &gpu::Device::allocate);
    device_->copy(Stream::compute, memory, host, {end});
    device_->launch(Stream::compute, prepared, {from, to, memory + scratch, workspace}, accesses);
    device_->copy(Stream::compute, host, memory, {end});
    device_->wait(device_->record_event(Stream::compute));
    for (std::size_t i = 0; i < results.size(); ++i) {
      std::copy_n(host + results[i], found[i].size(), found[i].begin());
    }
    return found;
  }

 private:
  std::byte* at_least(std::size_t bytes, std::span<std::byte>& room, std::byte* (gpu::Device::*allocate)(std::size_t)) {
    const std::size_t size = std::max(bytes, 2 * room.size());
    if (bytes > room.size()) room = {(*device_.*allocate)(size), size};
    return room.data();
  }

  const std::unique_ptr<gpu::Platform> platform_ = open_gpus(1);
  const std::unique_ptr<gpu::Device> device_ = platform_->open(0);
  std::span<std::byte> memory_, host_, workspace_;  // as large as the largest case that asked for them
};

template <class T>
double number(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

// The first element of a result that is too far off, and what it is.
template <class T>
std::string beyond_rounding(const Bytes& found, const Bytes& expected, double part) {
  double largest = 1;
  for (std::size_t at = 0; at < expected.size(); at += sizeof(T)) {
    const double value = std::abs(number<T>(expected.data() + at));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  for (std::size_t at = 0; at < expected.size(); at += sizeof(T)) {
    const double a = number<T>(found.data() + at), b = number<T>(expected.data() + at);
    const bool is_near = std::isfinite(b) ? std::abs(a - b) <= part * largest : a == b || (a != a && b != b);
    if (!is_near) return fmt::format("element {}: {}, expected {} to {}", at / sizeof(T), a, b, part * largest);
  }
  return {};
}

bool is_of_own_kernels(const KernelCase& c) {
  const GpuKernel kernel = make_gpu_kernel(c.op, c.request());
  // Normal values are computed with the device's logarithm and cosine, attention with its exponential, recurrences with
  // its tanh.
  return c.op.as<ops::RandomNormal>() == nullptr && c.op.as<ops::Attention>() == nullptr &&
         c.op.as<ops::AttentionGrad>() == nullptr && c.op.as<ops::Lstm>() == nullptr &&
         c.op.as<ops::LstmGrad>() == nullptr && c.op.as<ops::Gru>() == nullptr &&
         std::all_of(kernel.commands.begin(), kernel.commands.end(),
                     [](const GpuCommand& command) { return std::holds_alternative<GpuLaunch>(command); });
}

}  // namespace

std::vector<Bytes> run_on_gpu(const KernelCase& c) {
  // Never freed: what a driver has kept of it at the end of the process is not ours to order.
  static Runner* const runner = new Runner;
  return runner->run(c);
}

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::bf16: return std::ldexp(2, -7);
    case DType::f32: return std::ldexp(64, -23);
    case DType::f64: return std::ldexp(64, -52);
    default: return 0;
  }
}

std::string beyond_rounding(const std::vector<Type>& types, const std::vector<Bytes>& found,
                            const std::vector<Bytes>& expected) {
  for (std::size_t r = 0; r < types.size(); ++r) {
    const std::string text = dispatch(types[r].dtype, [&]<class T>() {
      return beyond_rounding<T>(found[r], expected[r], rounding_of(types[r].dtype));
    });
    if (!text.empty()) return fmt::format("result {}, {}", r, text);
  }
  return {};
}

void check_on_gpu(const KernelCase& c, const std::vector<Bytes>& expected, double tolerance) {
  if (!begins_example(to_string(c))) return;
  std::string differs;
  bool throws = false;
  try {
    const std::vector<Bytes> found = run_on_gpu(c);
    const bool to_the_bit = tolerance > 0 || is_of_own_kernels(c);
    differs =
        to_the_bit ? difference(c.results, found, expected, tolerance) : beyond_rounding(c.results, found, expected);
  } catch (const std::exception& error) {
    differs = error.what();
    throws = true;
  }
  expect_none(differs, c, "on a GPU");
  if (throws) after_exception();
}

void check_on_gpu(KernelCase c) {
  c.complete(7);
  check_on_gpu(c, run_reference(c));
}

}  // namespace pmaptrain::test
