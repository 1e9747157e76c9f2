#include "app/signals.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace pmaptrain::app {
namespace {

constexpr std::array<int, 3> stopping = {SIGINT, SIGTERM, SIGHUP};
constexpr std::int64_t second = 1'000'000'000;

std::atomic<int> received = 0;
std::atomic<std::int64_t> received_at = 0;  // nanoseconds; 0: no signal came
bool handling = false;
std::array<struct sigaction, stopping.size()> previous;

static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler must not wait on a lock");

std::int64_t monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * second + now.tv_nsec + 1;
}

// May run in several threads at once: exactly one of them sets the time, and that one's signal is the first.
void handle(int signal) {
  const int error = errno;
  const std::int64_t at = monotonic_now();
  errno = error;
  std::int64_t first = 0;
  if (received_at.compare_exchange_strong(first, at)) {
    received.store(signal);
  } else if (at - first > second) {
    raise_by_default(signal);
  }
}

}  // namespace

void end_process_one_by_signals() {
  if (::getpid() != 1) return;
  for (const int signal : stopping) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_DFL) ::signal(signal, raise_by_default);
  }
}

StopSignals::StopSignals() {
  received = 0;
  received_at = 0;
  handling = true;
  for (std::size_t i = 0; i < stopping.size(); ++i) {
    ::sigaction(stopping[i], nullptr, &previous[i]);
    if (previous[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    // Without these, a signal that arrives before the first instruction of another one's handler is handled first.
    ::sigemptyset(&action.sa_mask);
    for (const int other : stopping) ::sigaddset(&action.sa_mask, other);
    ::sigaction(stopping[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  if (received_at != 0) return;
  for (std::size_t i = 0; i < stopping.size(); ++i) ::sigaction(stopping[i], &previous[i], nullptr);
  handling = false;
}

void StopSignals::take(int signal) {
  std::int64_t first = 0;
  if (received_at.compare_exchange_strong(first, monotonic_now())) received.store(signal);
}

const std::atomic<int>* StopSignals::flag() { return &received; }

const std::atomic<int>* stop_flag() { return handling ? &received : nullptr; }

void raise_by_default(int signal) {
  ::signal(signal, SIG_DFL);
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);  // a handler has it blocked
  ::raise(signal);
  ::_exit(128 + signal);
}

}  // namespace pmaptrain::app
