// The one place that knows which backends there are.
#pragma once

#include <memory>
#include <optional>

#include "core/ops/all.h"
#include "core/runtime/backend.h"

namespace pmaptrain {

enum class BackendKind { cpu };

struct BackendOptions {
  std::optional<int> workers = {};  // none: as many as the backend finds good
  KernelChoice kernels = KernelChoice::best;
};

std::unique_ptr<Backend> make_backend(BackendKind kind, const BackendOptions& options = {});

}  // namespace pmaptrain
