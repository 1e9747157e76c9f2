#include "tests/running.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace pmaptrain::test {
namespace {

std::string& tags_of_case() {
  static std::string tags;
  return tags;
}

std::uint64_t& cases_begun() {
  static std::uint64_t count = 0;
  return count;
}

std::uint64_t& checks_failed() {
  static std::uint64_t count = 0;
  return count;
}

void unblock_all() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

void case_begins(std::string tags) {
  tags_of_case() = std::move(tags);
  ++cases_begun();
}

std::uint64_t number_of_case() { return cases_begun(); }

void check_fails() { ++checks_failed(); }

std::uint64_t failed_checks() { return checks_failed(); }

void check_may_start_a_process() {
  if (tags_of_case().find("[process]") != std::string::npos) return;
  throw std::logic_error("this case starts a process and lacks the tag [process] (it has " + tags_of_case() + ")");
}

void begin_as_from_a_shell() {
  // open() gives the lowest number that is free, which is this one.
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", O_RDWR) != fd) std::abort();
  }
  unblock_all();
  // Where it is ignored, no child has an exit status.
  std::signal(SIGCHLD, SIG_DFL);
  for (const char* const name : {"TERM", "NO_COLOR", "COLUMNS", "LINES", "LC_ALL", "LC_CTYPE", "LANG", "TZ"}) {
    ::unsetenv(name);
  }
}

void default_signals() {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);  // fails for those that cannot change
  unblock_all();
}

}  // namespace pmaptrain::test
