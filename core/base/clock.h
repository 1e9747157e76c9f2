// A monotonic clock for durations.
#pragma once

#include <time.h>

#include <chrono>

namespace pmaptrain {

using Clock = std::chrono::steady_clock;

inline double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// At most 30 years, which the clock holds.
inline Clock::duration duration_of(double seconds) {
  constexpr double most = 1e9;
  seconds = seconds < most ? seconds : most;
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// Clock::now() some milliseconds ago, which costs a fraction of the time to read.
inline Clock::time_point coarse_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return Clock::time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

inline double seconds_since(Clock::time_point begin) { return seconds_between(begin, Clock::now()); }

// Since this process began, in hundredths.
double seconds_since_process_began();

}  // namespace pmaptrain
