// Compiles CUDA C++ source to machine code with NVRTC, which needs no GPU.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <semaphore>
#include <string>
#include <utility>

#include "core/runtime/gpu/disk_cache.h"

namespace pmaptrain::cuda {

// Compiles each source once for all devices of a process, several in parallel, and keeps the code in a cache on disk.
// All functions are thread-safe.
class Compiler {
 public:
  Compiler();

  // Starts to compile in the background, for a later call of code() with the same arguments.
  void begin(const std::string& text, int compute_capability) { code_of(text, compute_capability); }
  // Returns code for GPUs with this compute capability, for example 90 for 9.0: machine code, or PTX if NVRTC does not
  // know the GPU yet. Multiplications and additions are not contracted to FMAs. Throws Error (failed) with the messages
  // of the compiler.
  std::string code(const std::string& text, int compute_capability) { return code_of(text, compute_capability).get(); }

 private:
  std::shared_future<std::string> code_of(const std::string& text, int compute_capability);
  std::string compile(const std::string& text, int compute_capability);

  const gpu::DiskCache cache_{"kernel"};
  std::counting_semaphore<> free_slots_;  // the number of further compilations that may run in parallel
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::shared_future<std::string>> known_;  // by compute capability and source
};

}  // namespace pmaptrain::cuda
