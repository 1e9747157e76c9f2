#include "core/train/benchmark.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/data/loader.h"
#include "core/data/open.h"
#include "core/ops/all.h"
#include "core/ops/matmul/matmul.h"
#include "core/runtime/cpu/executor.h"
#include "core/train/evaluator.h"
#include "core/train/start.h"

namespace pmaptrain::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

// By the kernel's own record of when the process began, in ticks since boot.
double seconds_since_process_began() {
  std::ifstream file("/proc/self/stat");
  std::string text;
  std::getline(file, text);
  double ticks = 0;
  std::size_t at = text.rfind(')');  // the command's name may hold spaces; field 22 is the 20th after it
  for (int field = 0; field < 20 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at != std::string::npos) ticks = std::stod(text.substr(at + 1));
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// Runs `make()()` on every worker at once, several times, and gives the best rate: amount a call / seconds.
double best_rate(int workers, double amount, const std::function<std::function<void()>()>& make) {
  constexpr int rounds = 3, calls = 4;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<double> rates(static_cast<std::size_t>(workers));
    std::vector<std::thread> threads;
    for (double& rate : rates) {
      threads.emplace_back([&rate, &make, amount] {
        use_one_thread_in_libraries();
        const std::function<void()> call = make();
        call();
        const Clock::time_point begin = Clock::now();
        for (int i = 0; i < calls; ++i) call();
        rate = calls * amount / seconds_since(begin);
      });
    }
    for (std::thread& thread : threads) thread.join();
    double total = 0;
    for (double rate : rates) total += rate;
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
    return std::function<void()>([kernel, arrays, scratch] {
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
    return std::function<void()>([from, to] { std::memcpy(to->data(), from->data(), size); });
  });
}

}  // namespace

Benchmark benchmark(const Setup& setup, std::int64_t steps) {
  Plan plan = make_plan(setup.training);
  Benchmark result;
  result.workers = worker_count(setup.spec().mesh);
  check_memory(estimate_memory(setup, plan, result.workers), setup);
  CpuExecutor executor(std::move(plan), {result.workers, KernelChoice::best});
  set_initial_values(executor, setup);
  {
    data::Loader loader(setup.source.train, data::Sampler::in_order(setup.batch.dataset), setup.batch, {0, 1, 2});
    feed(executor, loader.next());
  }
  executor.run();
  result.first_step_seconds = seconds_since_process_began();

  constexpr double worth_a_clock_reading = 0.005;
  Clock::time_point begin = Clock::now();
  executor.run();
  const double estimate = std::max(seconds_since(begin), 1e-9);
  const auto group = std::clamp<std::int64_t>(static_cast<std::int64_t>(worth_a_clock_reading / estimate) + 1, 1, steps);
  std::vector<double> seconds;
  while (result.steps < steps) {
    begin = Clock::now();
    executor.run(group);
    seconds.push_back(seconds_since(begin) / static_cast<double>(group));
    result.steps += group;
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t middle = seconds.size() / 2;
  result.median_step_seconds =
      seconds.size() % 2 == 1 ? seconds[middle] : (seconds[middle - 1] + seconds[middle]) / 2;
  result.min_step_seconds = seconds.front();
  result.examples_per_second = static_cast<double>(setup.batch.global) / result.median_step_seconds;
  result.flops_per_step = cost_of(*setup.training).flops;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  result.peak_rss_bytes = static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
  result.gemm_flops_per_second = gemm_peak(result.workers);
  result.copy_bytes_per_second = copy_peak(result.workers);
  return result;
}

}  // namespace pmaptrain::train
