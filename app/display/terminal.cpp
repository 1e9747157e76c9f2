#include "app/display/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>

#include "core/runtime/mpi/job.h"

namespace pmaptrain::display {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

bool is_moving_terminal(int fd) {
  const std::string_view term = variable("TERM");
  if (::isatty(fd) != 1 || term.empty() || term == "dumb") return false;
  return !is_launched() || ::tcgetsid(fd) == ::getsid(0);
}

// The first that is set decides, as in setlocale.
std::string locale_name() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const std::string_view value = variable(name); !value.empty()) return std::string(value);
  }
  return "";
}

// Such terminals may show the bar's characters in two columns each, and the line would wrap.
bool locale_is_east_asian() {
  const std::string name = locale_name();
  return name.starts_with("ja") || name.starts_with("ko") || name.starts_with("zh");
}

}  // namespace

void let_writes_fail() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // open() gives the lowest number that is free, which is this one.
    const int mode = fd == STDOUT_FILENO ? O_RDONLY : O_RDWR;
    if (::fcntl(fd, F_GETFD) == -1 && errno == EBADF && ::open("/dev/null", mode) < 0) return;
  }
}

bool use_color(Color color, int fd) {
  if (color != Color::automatic) return color == Color::always;
  return variable("NO_COLOR").empty() && is_moving_terminal(fd);
}

bool locale_is_utf8() {
  std::string name = locale_name();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return name.find("utf-8") != std::string::npos || name.find("utf8") != std::string::npos;
}

int columns_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int lines_of(int fd) {
  winsize size{};
  return ::ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

int text_columns(int fd) {
  return text_columns([fd] { return columns_of(fd); });
}

int text_columns(const std::function<int()>& width) { return width ? std::max(width() - 1, 0) : 0; }

void Output::write(std::string_view text) {
  while (!text.empty() && !broken_) {
    const ssize_t count = ::write(fd_, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd ready{fd_, POLLOUT, 0};
      ::poll(&ready, 1, -1);
    } else if (errno != EINTR) {
      broken_ = true;
    }
  }
}

Terminal standard_error(Color color) {
  Terminal terminal;
  terminal.fd = STDERR_FILENO;
  terminal.moving = is_moving_terminal(terminal.fd);
  terminal.color = use_color(color, terminal.fd);
  terminal.utf8 = locale_is_utf8() && !locale_is_east_asian();
  terminal.width = [] { return columns_of(STDERR_FILENO); };
  terminal.height = [] { return lines_of(STDERR_FILENO); };
  terminal.now = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return terminal;
}

}  // namespace pmaptrain::display
