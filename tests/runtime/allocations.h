// Counts what the whole test program allocates.
#pragma once

#include <cstdint>
#include <functional>

namespace pmaptrain::test {

// Calls of operator new, by any thread, while `f` runs.
std::int64_t count_allocations(const std::function<void()>& f);

struct Heap {
  std::int64_t calls = 0;       // of malloc and its relatives, by any thread and any library
  std::int64_t peak_bytes = 0;  // the most that was held at one time beyond what was held before
};

// What happens to the heap while `f` runs.
Heap watch_heap(const std::function<void()>& f);
// While watch_heap runs: the calls so far.
std::int64_t heap_calls();

}  // namespace pmaptrain::test
