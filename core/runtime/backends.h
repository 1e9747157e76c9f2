// The only place that lists the backends.
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
// The name of a backend in a config.
std::string_view to_string(BackendKind kind);

inline constexpr BackendKind backend_kinds[] = {BackendKind::cpu, BackendKind::cuda, BackendKind::reference};
// The backends that need no GPU.
inline constexpr BackendKind host_backends[] = {BackendKind::cpu, BackendKind::reference};

// Options of backends. The backend "reference" ignores them: it has one worker and uses reference kernels.
struct BackendOptions {
  std::optional<int> workers = {};            // threads or GPUs; empty: the backend chooses
  KernelChoice kernels = KernelChoice::best;  // cpu only
  bool deterministic = false;                 // cuda only: results do not depend on the number of GPUs
  bool tf32 = false;                          // cuda only: operands of matrix products may be rounded to TF32
  int blocks = 0;  // cuda only, if deterministic: the number of blocks; 0: the mesh determines it
  // For cuda: the memory that a plan may use on each GPU; empty: all of it.
  std::optional<std::size_t> gpu_memory = {};
};

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options = {});

// For tests: makes the backend "cuda" use `platform` in place of libpmaptrain_cuda.so. Null restores this library. The
// second function does so for the calling thread alone, which stands for a process.
void set_gpu_platform(gpu::Platform* platform);
void set_gpu_platform_of_thread(gpu::Platform* platform);

// Says which part of the GPUs this process may use, before it looks for them (gpu::gpus_of_process()).
void set_host_place(const HostPlace& place);

// The GPUs that this process may use. If there are none, `none_because` is the reason and `help` a remedy, if known.
struct Gpus {
  std::vector<gpu::Properties> all;
  std::string none_because, help;
};
Gpus find_gpus();

// Whether the GPUs of this process are left as they are, since one has failed while others may wait for it
// (gpu::Platform::give_up()). Then the process has to end by _Exit().
bool gpus_are_given_up();

}  // namespace pmaptrain
