// Counts what the whole test program allocates.
#pragma once

#include <cstdint>
#include <functional>

namespace pmaptrain::test {

// Calls of operator new, by any thread, while `f` runs.
std::int64_t count_allocations(const std::function<void()>& f);

}  // namespace pmaptrain::test
