// The threads of the test's own process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <thread>

namespace pmaptrain::test {

inline std::int64_t threads_of_process() {
  std::int64_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

// The same once it has stayed for some time: the system lists a thread for a moment after it was joined.
inline std::int64_t settled_threads() {
  constexpr int enough = 10;
  std::int64_t count = threads_of_process();
  for (int same = 0, tries = 0; same < enough && tries < 1000; ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const std::int64_t now = threads_of_process();
    same = now == count ? same + 1 : 0;
    count = now;
  }
  return count;
}

}  // namespace pmaptrain::test
