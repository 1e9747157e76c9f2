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

enum class BackendKind { cpu, reference };
// As a config has it.
std::string_view to_string(BackendKind kind);

inline constexpr BackendKind backend_kinds[] = {BackendKind::cpu, BackendKind::reference};

// Of the CPU backend; the reference has one worker and reference kernels.
struct BackendOptions {
  std::optional<int> workers = {};  // none: as many as the backend finds good
  KernelChoice kernels = KernelChoice::best;
};

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options = {});

// The GPUs that this process may use; where there is none, why, and what would help (which may be empty).
struct Gpus {
  std::vector<gpu::Properties> all;
  std::string none_because, help;
};
Gpus find_gpus();

}  // namespace pmaptrain
