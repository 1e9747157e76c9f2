// Runs a plan on CPU threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/plan.h"

namespace pmaptrain {

struct CpuOptions {
  int workers = 1;  // threads, the caller's included
  KernelChoice kernels = KernelChoice::best;
  // What makes a kernel, in place of make_cpu_kernel; called on the thread of the worker that will run it.
  std::function<std::unique_ptr<CpuKernel>(const Op& op, const CpuRequest& request)> make_kernel = {};
};

// What carries out a step of the plan.
struct KernelInfo {
  std::string implementation;                // "reference", or the library's word
  std::vector<LayoutChange> layout_changes;  // over all that run it once, in one iteration
};

// Where the time of some steps went.
struct StepTimes {
  std::map<const Step*, double>
      seconds;              // by step of the plan, of all workers together, readings of the clock left out
  double wall_seconds = 0;  // from the first step's begin to the last one's end
};

// Memory, kernels and threads for one plan. The bits of every result are the same for any number of workers. The
// calling thread is one of them while run() lasts. Nothing here is to be called while run() is under way.
class CpuExecutor {
 public:
  // Throws Error (resource) when memory or threads cannot be had.
  CpuExecutor(Plan plan, const CpuOptions& options);
  ~CpuExecutor();
  CpuExecutor(const CpuExecutor&) = delete;
  CpuExecutor& operator=(const CpuExecutor&) = delete;

  const Plan& plan() const;
  int workers() const;

  // An input's value: the same on every device, written to every copy there is.
  void set(std::string_view input, std::span<const std::byte> value);
  // An input's value on one device. Throws Error (failed) when the input is kept once for all.
  void set(std::string_view input, std::int64_t device, std::span<const std::byte> value);
  // The memory of an input that varies: one slice per device, in device order. Empty for one that is kept otherwise.
  std::span<std::byte> stacked(std::string_view input);

  // An input's present value (after run(): what its update left) and an output's, on one device.
  std::span<const std::byte> input(std::string_view name, std::int64_t device = 0) const;
  std::span<const std::byte> output(std::string_view name, std::int64_t device = 0) const;

  // Runs the program `steps` times, each step on what the one before left. The first exception of a worker comes out
  // here, and again from every later call; the values are then undefined.
  void run(std::int64_t steps = 1);

  // How often all workers have met within the steps so far, modulo 2^32.
  std::uint32_t meetings() const;
  // Bytes of all pools.
  std::size_t memory_bytes() const;
  // What is behind each kernel step of the plan; steps are found in plan().
  std::map<const Step*, KernelInfo> kernels() const;

  // As run(), but each worker reads the clock around everything that it does. For reports: a step takes longer so.
  StepTimes profile(std::int64_t steps);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pmaptrain
