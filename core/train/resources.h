// What a run needs of memory, and what would fit where that is too much.
#pragma once

#include <cstdint>
#include <optional>

#include "core/runtime/backend.h"
#include "core/setup/memory.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Of a run, or of steps of it, that need so much of the backend; with so many of the members, or with all.
MemoryEstimate estimate_memory(const Setup& setup, const Needs& needs,
                               std::optional<std::int64_t> members = std::nullopt);
// The same of a run of `source`; what would fit is planned: how many members of an ensemble, else how many GPUs, which
// batch, how many microbatches.
void check_memory(const MemoryEstimate& estimate, const Setup& setup, const Backend& backend, const Source& source);

}  // namespace pmaptrain::train
