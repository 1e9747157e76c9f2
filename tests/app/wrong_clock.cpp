// A machine whose clock of the day jumps: loaded into the program before its libraries (LD_PRELOAD), it sets that clock
// back by an hour each time it is read. The monotonic clock is left alone.
#include <dlfcn.h>
#include <sys/time.h>

#include <ctime>

namespace {

time_t jump() {
  static time_t lost = 0;
  return lost += 3600;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) noexcept {
  using Function = int (*)(clockid_t, struct timespec*);
  static const auto real = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "clock_gettime"));
  const int result = real(clock, time);
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec -= jump();
  return result;
}

extern "C" int gettimeofday(struct timeval* time, void*) noexcept {
  struct timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* to) noexcept {
  struct timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
