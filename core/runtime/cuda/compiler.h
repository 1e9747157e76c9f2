// CUDA C++ text made machine code by NVRTC, which needs no GPU.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <semaphore>
#include <string>
#include <utility>

#include "core/runtime/cuda/code_cache.h"

namespace pmaptrain::cuda {

// Compiles each text once for all devices of a process, several at a time. All functions may be called on any thread.
class Compiler {
 public:
  Compiler();

  // Begins, in a thread of its own, what code() will be asked for. Throws nothing that code() would not.
  void begin(const std::string& text, int compute_capability) { code_of(text, compute_capability); }
  // Code for a GPU of this compute capability (90): machine code, or PTX where the compiler is older than the GPU.
  // Arithmetic is not contracted, as everywhere in the project. Throws Error (failed) with the compiler's messages.
  std::string code(const std::string& text, int compute_capability) { return code_of(text, compute_capability).get(); }

 private:
  std::shared_future<std::string> code_of(const std::string& text, int compute_capability);
  std::string compile(const std::string& text, int compute_capability);

  const CodeCache cache_ = CodeCache::of_user();
  std::counting_semaphore<> free_;  // how many more may be compiled at a time
  std::mutex mutex_;
  std::map<std::pair<int, std::string>, std::shared_future<std::string>> known_;  // by compute capability and text
};

}  // namespace pmaptrain::cuda
