// The one place that knows which backends there are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/ops/all.h"
#include "core/runtime/backend.h"
#include "core/runtime/gpu/device.h"

namespace pmaptrain {

enum class BackendKind { cpu, cuda, reference };
// As a config has it.
std::string_view to_string(BackendKind kind);

inline constexpr BackendKind backend_kinds[] = {BackendKind::cpu, BackendKind::cuda, BackendKind::reference};
// Those that every machine has.
inline constexpr BackendKind host_backends[] = {BackendKind::cpu, BackendKind::reference};

// The reference has one worker and reference kernels.
struct BackendOptions {
  std::optional<int> workers = {};             // threads, or GPUs; none: as many as the backend finds good
  KernelChoice kernels = KernelChoice::best;   // of cpu
  bool deterministic = false;                  // of cuda: the same bits on any number of GPUs
  bool tf32 = false;                           // of cuda: operands of products may be rounded to TF32
  std::optional<std::size_t> gpu_memory = {};  // of cuda: what a plan may use of each GPU; none: all that it has
};

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options = {});

// For tests: what the backend cuda runs on in place of libpmaptrain_cuda.so; null: that module again.
void set_gpu_platform(gpu::Platform* platform);

// The GPUs that this process may use; where there is none, why, and what would help (which may be empty).
struct Gpus {
  std::vector<gpu::Properties> all;
  std::string none_because, help;
};
Gpus find_gpus();

}  // namespace pmaptrain
