// What a run's memory is needed for, as `validate` and `explain --memory` show it.
#pragma once

#include <string>

#include "core/setup/memory.h"

namespace pmaptrain::report {

// The memory of a process, and of the GPU that it uses, by purpose, as lines of columns.
std::string memory_text(const setup::MemoryEstimate& memory);

}  // namespace pmaptrain::report
