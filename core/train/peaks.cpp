#include "core/train/peaks.h"

#include <algorithm>
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
#include "core/ops/all.h"
#include "core/ops/matmul/matmul.h"

namespace pmaptrain::train {
namespace {

using Call = std::function<void()>;

constexpr std::size_t alignment = 64;  // of a kernel's scratch memory

// Throws Error (resource) when the thread cannot be started.
template <class F>
std::future<double> on_a_thread(F&& f) {
  try {
    return std::async(std::launch::async, std::forward<F>(f));
  } catch (const std::system_error& error) {
    fail_resource("a thread that measures the machine's peak rates could not be started: " + error.code().message(),
                  "fewer workers (--workers) need fewer threads");
  }
}

// Every worker calls what it made with `make` for a while; the sum of the workers' rates, amount a call / seconds. The
// best of several rounds, since other processes may take the cores for a while.
double best_rate(int workers, double amount, const std::function<Call()>& make) {
  constexpr int rounds = 3;
  constexpr double seconds = 0.05;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    // A future waits for its thread even where a later one cannot be started, and hands on what it threw.
    std::vector<std::future<double>> rates;
    rates.reserve(static_cast<std::size_t>(workers));
    for (int w = 0; w < workers; ++w) {
      rates.push_back(on_a_thread([&make, amount] {
        use_one_thread_in_libraries();
        const Call call = make();
        call();
        const Clock::time_point begin = Clock::now();
        double calls = 0, taken = 0;
        while (taken < seconds) {
          call();
          calls += 1;
          taken = seconds_since(begin);
        }
        return calls * amount / taken;
      }));
    }
    double total = 0;
    for (std::future<double>& rate : rates) total += rate.get();
    best = std::max(best, total);
  }
  return best;
}

double gemm_peak(int workers) {
  static constexpr std::int64_t n = 1024;
  return best_rate(workers, 2.0 * n * n * n, [] {
    const std::vector<Type> operands(2, Type{DType::f32, {n, n}, {}}), results(1, Type{DType::f32, {n, n}, {}});
    std::shared_ptr<CpuKernel> kernel = make_cpu_kernel(ops::Matmul{}, {operands, results, 1, {true, true}});
    auto arrays = std::make_shared<std::vector<std::vector<float>>>(3, std::vector<float>(n * n, 0.5F));
    auto scratch = std::make_shared<std::vector<std::byte>>(kernel->scratch_bytes() + alignment);
    return Call([kernel, arrays, scratch] {
      const auto bytes_of = [&](std::size_t i) { return reinterpret_cast<std::byte*>((*arrays)[i].data()); };
      const std::byte* const in[] = {bytes_of(0), bytes_of(1)};
      std::byte* const out[] = {bytes_of(2)};
      const auto unaligned = reinterpret_cast<std::uintptr_t>(scratch->data()) % alignment;
      kernel->run({in, out, scratch->data() + (unaligned == 0 ? 0 : alignment - unaligned)});
    });
  });
}

double copy_peak(int workers) {
  static constexpr std::size_t size = std::size_t{64} << 20;
  return best_rate(workers, 2.0 * static_cast<double>(size), [] {
    auto from = std::make_shared<std::vector<std::byte>>(size, std::byte{1});
    auto to = std::make_shared<std::vector<std::byte>>(size);
    return Call([from, to] { std::memcpy(to->data(), from->data(), size); });
  });
}

}  // namespace

Peaks measure_peaks(int workers) { return {gemm_peak(workers), copy_peak(workers)}; }

}  // namespace pmaptrain::train
