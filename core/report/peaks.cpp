#include "core/report/peaks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/graph/builder.h"
#include "core/ops/all.h"
#include "core/ops/elementwise/unary.h"
#include "core/ops/matmul/matmul.h"
#include "core/report/benchmark.h"

namespace pmaptrain::report {
namespace {

using Call = std::function<void()>;

constexpr std::size_t alignment = 64;  // of a kernel's scratch memory

// Throws Error (resource) if the thread cannot be started.
template <class F>
auto on_a_thread(F&& f) {
  try {
    return std::async(std::launch::async, std::forward<F>(f));
  } catch (const std::system_error& error) {
    fail_resource("a thread that measures the machine's peak rates could not be started: " + error.code().message(),
                  "fewer workers (--workers) need fewer threads");
  }
}

// The sum of the workers' rates, `amount` of a call / seconds, while every worker repeats the call that it made with
// `make`. Returns the best of several rounds, since other processes may use the cores for a while.
double best_rate(int workers, double amount, const std::function<Call()>& make) {
  constexpr std::size_t rounds = 3;
  constexpr double seconds = 0.05;
  using Rates = std::array<double, rounds>;
  // The destructor of a future waits for its thread, also if a later thread cannot be started. get() throws what the
  // thread threw.
  std::vector<std::future<Rates>> rates;
  // The workers begin together. If a thread cannot be started, the broken promise ends those that wait.
  std::promise<void> begins;
  const std::shared_future<void> begun = begins.get_future().share();
  std::vector<std::future<void>> ready;
  for (int w = 0; w < workers; ++w) {
    std::promise<void> is_ready;
    ready.push_back(is_ready.get_future());
    rates.push_back(on_a_thread([&make, amount, begun, is_ready = std::move(is_ready)]() mutable {
      use_one_thread_in_libraries();
      const Call call = make();
      call();
      is_ready.set_value();
      begun.get();
      Rates of_rounds{};
      for (double& rate : of_rounds) {
        const Clock::time_point begin = Clock::now();
        double calls = 0, taken = 0;
        while (taken < seconds) {
          call();
          calls += 1;
          taken = seconds_since(begin);
        }
        rate = calls * amount / taken;
      }
      return of_rounds;
    }));
  }
  for (const std::future<void>& one : ready) one.wait();
  begins.set_value();
  Rates sums{};
  for (std::future<Rates>& one : rates) {
    const Rates of_rounds = one.get();
    for (std::size_t round = 0; round < rounds; ++round) sums[round] += of_rounds[round];
  }
  return *std::max_element(sums.begin(), sums.end());
}

std::vector<std::byte> filled(std::int64_t elements, DType dtype, double with) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(dtype));
  dispatch(dtype, [&]<class T>() {
    const T value = static_cast<T>(with);
    for (std::size_t at = 0; at < bytes.size(); at += sizeof value) std::memcpy(&bytes[at], &value, sizeof value);
  });
  return bytes;
}

double gemm_peak(int workers, DType dtype) {
  static constexpr std::int64_t n = sizes_of_cpus.rows;
  return best_rate(workers, 2.0 * n * n * n, [dtype] {
    const std::vector<Type> operands(2, Type{dtype, {n, n}, {}}), results(1, Type{dtype, {n, n}, {}});
    std::shared_ptr<CpuKernel> kernel = make_cpu_kernel(ops::Matmul{}, {operands, results, 1, {true, true}});
    auto arrays = std::make_shared<std::vector<std::vector<std::byte>>>(3, filled(n * n, dtype, 0.5));
    auto scratch = std::make_shared<std::vector<std::byte>>(kernel->scratch_bytes() + alignment);
    return Call([kernel, arrays, scratch] {
      const std::byte* const in[] = {(*arrays)[0].data(), (*arrays)[1].data()};
      std::byte* const out[] = {(*arrays)[2].data()};
      const auto unaligned = reinterpret_cast<std::uintptr_t>(scratch->data()) % alignment;
      kernel->run({in, out, scratch->data() + (unaligned == 0 ? 0 : alignment - unaligned)});
    });
  });
}

double copy_peak(int workers) {
  static constexpr std::size_t size = sizes_of_cpus.copied;
  return best_rate(workers, 2.0 * static_cast<double>(size), [] {
    auto from = std::make_shared<std::vector<std::byte>>(size, std::byte{1});
    auto to = std::make_shared<std::vector<std::byte>>(size);
    return Call([from, to] { std::memcpy(to->data(), from->data(), size); });
  });
}

// Seconds of one step of a program. All elements of its inputs are 0.5.
double seconds_of_step(const Backend& backend, const Program& program) {
  const auto shared = std::make_shared<const Program>(program);
  const std::unique_ptr<Module> module = backend.load({{{"peak", shared, 1}}});
  for (std::size_t i = 0; i < shared->inputs.size(); ++i) {
    const Type& type = shared->type(shared->inputs[i].value);
    module->wait(module->write(module->input(0, i), {every_device, 0}, filled(numel(type), type.dtype, 0.5)));
  }
  module->wait(module->submit(0, 0));
  return measure_step_seconds(*module, 0, 0.05);
}

}  // namespace

Peaks measure_gpu_peaks(const Backend& backend, int gpus, DType products, const PeakSizes& sizes) {
  const Mesh mesh({{"gpu", gpus}});
  const AxisSet each = mesh.all();
  const auto n = static_cast<double>(sizes.rows), count = static_cast<double>(gpus);
  const auto elements = static_cast<std::int64_t>(sizes.copied / sizeof(float));

  const auto of = [&](std::initializer_list<Type> inputs, const Op& op) {
    Program program;
    program.mesh = mesh;
    Builder builder(program, all_ops());
    std::vector<Value> values;
    for (const Type& type : inputs) {
      values.push_back(builder.input(Group::state, "input_" + std::to_string(values.size()), type));
    }
    builder.output("output", builder.emit(op, values));
    return program;
  };
  const Type matrix{products, {sizes.rows, sizes.rows}, each};
  const Program product = of({matrix, matrix}, ops::Matmul{});
  const Program copy = of({{DType::f32, {elements}, each}}, ops::Neg{});
  return {2 * n * n * n * count / seconds_of_step(backend, product),
          2 * static_cast<double>(sizes.copied) * count / seconds_of_step(backend, copy)};
}

Peaks measure_peaks(const Backend& backend, int workers, DType products) {
  if (backend.uses_gpus()) return measure_gpu_peaks(backend, workers, products);
  return {gemm_peak(workers, products), copy_peak(workers)};
}

DType product_dtype(const Program& program) {
  const bool narrow = std::any_of(program.types.begin(), program.types.end(),
                                  [](const Type& type) { return type.dtype == DType::bf16; });
  return narrow ? DType::bf16 : DType::f32;
}

}  // namespace pmaptrain::report
