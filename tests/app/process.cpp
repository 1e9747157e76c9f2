#include "tests/app/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "tests/running.h"

namespace pmaptrain::tests {
namespace {

// PMAPTRAIN_BIN as ctest sets it, else the release build beside the sources.
std::string binary() {
  const char* const given = std::getenv("PMAPTRAIN_BIN");
  return given != nullptr ? given : "build/release/pmaptrain";
}

}  // namespace

std::string binary_path() {
  test::check_may_start_a_process();
  std::string program = std::filesystem::absolute(binary()).string();
  if (::access(program.c_str(), X_OK) != 0) {
    throw std::runtime_error("there is no program '" + program + "'; ctest sets PMAPTRAIN_BIN");
  }
  return program;
}

Process::Process(const std::vector<std::string>& arguments, int ignored, const std::filesystem::path& directory) {
  std::vector<std::string> all{binary_path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  start(std::move(all), ignored, directory);
}

Process::Process(const std::vector<std::string>& arguments, const Onto& onto) {
  std::vector<std::string> all{binary_path()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  start(std::move(all), 0, ".", onto);
}

Process::Process(const Shell& shell, const Onto& onto) {
  ::setenv("PROGRAM", binary_path().c_str(), 1);
  start({"/bin/bash", "-c", shell.script}, 0, ".", onto);
}

void Process::start(std::vector<std::string> all, int ignored, const std::filesystem::path& directory,
                    const Onto& onto) {
  test::check_may_start_a_process();
  std::vector<char*> argv;
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const std::string out = folder_ / "out", err = folder_ / "err";
  // A signal that reaches the child before it has dispositions of its own would run the test program's handlers.
  sigset_t all_signals, before;
  sigfillset(&all_signals);
  ::pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  pid_ = ::fork();
  if (pid_ != 0) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  } else {
    test::default_signals();  // blocks none
    if (ignored != 0) std::signal(ignored, SIG_IGN);
    const auto file = [](const std::string& path) {
      return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    };
    const int out_fd = onto.out >= 0 ? onto.out : file(out);
    const int err_fd = onto.err >= 0 ? onto.err : file(err);
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(out_fd, STDOUT_FILENO);
    ::dup2(err_fd, STDERR_FILENO);
    if (::chdir(directory.c_str()) != 0) ::_exit(126);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Process::wait_for(const std::string& text) const {
  return wait_until([&] { return errors().find(text) != std::string::npos; });
}

void Process::send(int signal) const { ::kill(pid_, signal); }

bool Process::wait_for_delivery(int signal) const {
  return wait_until([&] {  // "ShdPnd" of proc(5): the signals that wait for any of the process's threads
    std::istringstream lines(read_text("/proc/" + std::to_string(pid_) + "/status"));
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind("ShdPnd:", 0) == 0) return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) == 0;
    }
    return true;  // the process has ended
  });
}

bool Process::running() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
}

// What each thread of a process waits for, and what the process has said, for the failure of a case.
std::string Process::where_it_is() const {
  std::string text = errors() + read_text(folder_ / "out");
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    text += task.path().filename().string();
    for (const char* const file : {"comm", "wchan", "syscall", "status"}) {
      text += " " + read_text(task.path() / file);
    }
    text += "\n";
  }
  return text;
}

Finished Process::wait() {
  // A process that never ends fails its case with what it does, before the limit on the time of all cases ends them.
  const auto begin = std::chrono::steady_clock::now();
  const auto waited = [&] { return std::chrono::steady_clock::now() - begin; };
  while (running() && waited() < std::chrono::seconds(200)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(waited() < std::chrono::milliseconds(100) ? 1 : 5));
  }
  if (running()) {
    const std::string where = where_it_is();
    ::kill(pid_, SIGKILL);
    FAIL_CHECK("the process does not end: " << where);
  }
  int status = 0;
  ::waitpid(pid_, &status, 0);
  pid_ = -1;
  Finished finished;
  if (WIFEXITED(status)) finished.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  finished.out = read_text(folder_ / "out");
  finished.err = errors();
  return finished;
}

Finished run_binary(const std::vector<std::string>& arguments) { return Process(arguments).wait(); }
Finished run_shell(const std::string& script) { return Process(Shell{script}).wait(); }

}  // namespace pmaptrain::tests
