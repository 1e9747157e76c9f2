// Loaded before the C library: lets one call of the system fail, the n-th of its kind or all from the n-th on.
//
//   PMAPTRAIN_FAULT=mmap:2:12         the second mmap fails with error number 12 (ENOMEM)
//   PMAPTRAIN_FAULT=mmap:2:12:all     so do all after it
//   PMAPTRAIN_FAULT_BELOW=/tmp/x      only files whose path begins so count; threads count wherever they are
//   PMAPTRAIN_FAULT_COUNTS=FILE       how often each kind was called, written when the process ends
//
// It is for what a test cannot let fail in its own process: threads, and the calls that read and map data. The calls
// that change a run folder fail there, at core/run/files/file_system.h; write is one of them, in a process for once.
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr std::array kinds = {"open", "write", "mmap", "thread"};
enum Kind : unsigned { open_kind, write_kind, mmap_kind, thread_kind };

std::array<std::atomic<long>, kinds.size()> counts;
long failing_kind = -1, failing_from = 0;
int failing_error = 0;
bool failing_ever_after = false;
char below[PATH_MAX];

__attribute__((constructor)) void read_environment() {
  if (const char* const folder = std::getenv("PMAPTRAIN_FAULT_BELOW")) std::snprintf(below, sizeof below, "%s", folder);
  const char* const fault = std::getenv("PMAPTRAIN_FAULT");
  if (fault == nullptr) return;
  for (unsigned i = 0; i < kinds.size(); ++i) {
    const std::size_t length = std::strlen(kinds[i]);
    if (std::strncmp(fault, kinds[i], length) == 0 && fault[length] == ':') {
      failing_kind = i;
      std::sscanf(fault + length, ":%ld:%d", &failing_from, &failing_error);
    }
  }
  failing_ever_after = std::strstr(fault, ":all") != nullptr;
}

__attribute__((destructor)) void write_counts() {
  const char* const path = std::getenv("PMAPTRAIN_FAULT_COUNTS");
  if (path == nullptr) return;
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return;
  for (unsigned i = 0; i < kinds.size(); ++i) std::fprintf(file, "%s %ld\n", kinds[i], counts[i].load());
  std::fclose(file);
}

// The call behind ours.
template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

// Whether this call is to fail; errno then says why.
bool fails(Kind kind) {
  const long call = ++counts[kind];
  if (failing_kind != static_cast<long>(kind)) return false;
  if (failing_ever_after ? call < failing_from : call != failing_from) return false;
  errno = failing_error;
  return true;
}

bool is_below(const char* path) { return std::strncmp(path, below, std::strlen(below)) == 0; }

bool counts_for(int fd) {
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return is_below(path);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  if (is_below(path) && fails(open_kind)) return -1;
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  return real(path, flags, mode);
}

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (counts_for(fd) && fails(write_kind)) return -1;
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return real(fd, bytes, size);
}

void* mmap(void* address, std::size_t size, int protection, int flags, int fd, off_t offset) noexcept {
  if (fd >= 0 && counts_for(fd) && fails(mmap_kind)) return MAP_FAILED;
  static const auto real = next<void* (*)(void*, std::size_t, int, int, int, off_t)>("mmap");
  return real(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* argument) noexcept {
  if (fails(thread_kind)) return errno;
  static const auto real = next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return real(thread, attributes, run, argument);
}

}  // extern "C"
