// The memory that a run needs, and smaller runs that would fit.
#pragma once

#include <cstdint>
#include <optional>

#include "core/runtime/backend.h"
#include "core/setup/memory.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// The estimate for a run whose backend needs `needs`, with `members` of its members (none: all).
setup::MemoryEstimate estimate_memory(const setup::Setup& setup, const MemoryNeeds& needs,
                                      std::optional<std::int64_t> members = std::nullopt);
// Throws Error (resource) if the run of `source` does not fit into these processes. The message suggests what would
// fit, which is found by planning: a number of members of an ensemble; else a number of GPUs, a batch size, a number of
// microbatches.
void check_memory(const setup::MemoryEstimate& estimate, const setup::Setup& setup, const Backend& backend,
                  const Source& source, const Processes& processes = {});

}  // namespace pmaptrain::train
