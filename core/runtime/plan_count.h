// Counts plans, so that tests can show that no entry is planned more often than necessary.
#pragma once

#include <cstdint>

namespace pmaptrain {

// How many plans the backends of this process have made so far: on CPUs one for each entry, on GPUs one for each entry
// and GPU.
std::int64_t plans_made();
// The planners call this.
void count_plan();

}  // namespace pmaptrain
