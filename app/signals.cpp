#include "app/signals.h"

#include <signal.h>

#include <array>

namespace pmaptrain::app {
namespace {

constexpr std::array<int, 3> stopping = {SIGINT, SIGTERM, SIGHUP};

std::atomic<int> received = 0;
std::array<struct sigaction, stopping.size()> previous;

void handle(int signal) {
  if (received != 0) {
    // Blocked until this handler returns, and then final.
    ::signal(signal, SIG_DFL);
    ::raise(signal);
    return;
  }
  received = signal;
}

}  // namespace

StopSignals::StopSignals() {
  received = 0;
  for (std::size_t i = 0; i < stopping.size(); ++i) {
    ::sigaction(stopping[i], nullptr, &previous[i]);
    if (previous[i].sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = SA_RESTART;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(stopping[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (std::size_t i = 0; i < stopping.size(); ++i) ::sigaction(stopping[i], &previous[i], nullptr);
}

const std::atomic<int>* StopSignals::flag() { return &received; }

void raise_by_default(int signal) {
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace pmaptrain::app
