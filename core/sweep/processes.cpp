#include "core/sweep/processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/runtime/mpi/job.h"

namespace pmaptrain::sweep {
namespace {

// What a failing run says is short; a run that writes without end is read up to here.
constexpr std::size_t most_bytes = std::size_t{1} << 20;

Descriptor temporary_file(const char* name) {
  Descriptor file(::memfd_create(name, MFD_CLOEXEC));
  if (!file)
    fail_resource(fmt::format("there is no temporary file for the output of a trial: {}", std::strerror(errno)));
  return file;
}

std::string text_of(const Descriptor& file) {
  std::string text(most_bytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::pread(file.get(), text.data() + size, text.size() - size, static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

// Becomes the program, in the child after fork(), where all signals are blocked: none is lost between the handlers of
// the sweep and the actions of the run. Only calls that are safe after a signal.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment, int out, int err,
                         pid_t parent) {
  ::setpgid(0, 0);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);  // it died before
  const int in = ::open("/dev/null", O_RDONLY);
  ::dup2(in, 0);
  ::dup2(out, 1);
  ::dup2(err, 2);
  ::syscall(SYS_close_range, 3, ~0U, 0);  // what MPI has open; an older system leaves it open
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(program, arguments, environment);
  constexpr char text[] = "the program cannot be started\n";
  constexpr int not_started = 127;
  ::_exit(::write(2, text, sizeof text - 1) < 0 ? not_started - 1 : not_started);
}

// Pointers to the texts, as exec takes them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& one : texts) pointers.push_back(one.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A run is one process, whatever started the sweep.
std::vector<std::string> environment_of_run() {
  std::vector<std::string> variables;
  for (char** one = environ; *one != nullptr; ++one) {
    const std::string_view variable(*one);
    if (!tells_of_job(variable.substr(0, variable.find('=')))) variables.emplace_back(variable);
  }
  return variables;
}

}  // namespace

Processes::Processes(std::filesystem::path program) : program_(std::move(program)) { ::signal(SIGCHLD, SIG_DFL); }

Processes::~Processes() {
  for (const auto& [pid, child] : children_) ::kill(-pid, SIGKILL);
  for (const auto& [pid, child] : children_) ::waitpid(pid, nullptr, 0);
}

std::filesystem::path Processes::this_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

void Processes::start(std::size_t job, const std::vector<std::string>& arguments) {
  Child child;
  child.job = job;
  child.out = temporary_file("trial-out");
  child.err = temporary_file("trial-err");
  std::vector<std::string> all{program_.string()};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = environment_of_run();
  const std::vector<char*> pointers = pointers_to(all), environment = pointers_to(variables);
  const pid_t parent = ::getpid();
  sigset_t all_signals, before;
  ::sigfillset(&all_signals);
  ::pthread_sigmask(SIG_SETMASK, &all_signals, &before);
  const pid_t pid = ::fork();
  if (pid == 0) become(pointers.front(), pointers.data(), environment.data(), child.out.get(), child.err.get(), parent);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    fail_resource(fmt::format("a trial cannot be started: {}", std::strerror(error)),
                  "allow more processes (ulimit -u), or set max_concurrent; --resume goes on");
  }
  ::setpgid(pid, pid);  // whichever comes first
  child.handle = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  children_.emplace(pid, std::move(child));
}

std::optional<Exit> Processes::wait(double seconds) {
  if (children_.empty()) return std::nullopt;
  std::vector<pollfd> handles;
  for (const auto& [pid, child] : children_) handles.push_back({child.handle.get(), POLLIN, 0});
  ::poll(handles.data(), handles.size(), static_cast<int>(seconds * 1000));
  for (auto at = children_.begin(); at != children_.end(); ++at) {
    int status = 0;
    const pid_t found = ::waitpid(at->first, &status, WNOHANG);
    if (found == 0 || (found < 0 && errno == EINTR)) continue;
    Exit exit;
    exit.job = at->second.job;
    if (WIFSIGNALED(status)) exit.signal = WTERMSIG(status);
    if (WIFEXITED(status)) exit.status = WEXITSTATUS(status);
    exit.out = text_of(at->second.out);
    exit.err = text_of(at->second.err);
    if (found < 0) {
      exit.status = static_cast<int>(ExitStatus::failed);
      exit.err = fmt::format("how the process ended is unknown: {}", std::strerror(errno));
    }
    children_.erase(at);
    return exit;
  }
  return std::nullopt;
}

void Processes::stop() {
  for (const auto& [pid, child] : children_) ::kill(pid, SIGTERM);
}

}  // namespace pmaptrain::sweep
