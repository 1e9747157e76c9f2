#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "core/base/error.h"

namespace {

bool is_closed_pipe(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLERR) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  pmaptrain::display::let_writes_fail();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const int status = pmaptrain::app::run_program(arguments, {std::cout, std::cerr, STDOUT_FILENO, STDERR_FILENO});
  // What was asked for did not get out: a full disk, say. A reader that went away (a closed pipe) is no failure.
  if (!std::cout.flush() && !is_closed_pipe(STDOUT_FILENO)) {
    std::cerr << "error: standard output could not be written\n";
    return status == 0 ? static_cast<int>(pmaptrain::ExitStatus::failed) : status;
  }
  return status;
}
