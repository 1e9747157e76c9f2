// Loaded before the C library: lets one call of the system fail, the n-th of its kind or all from the n-th on.
//
//   PMAPTRAIN_FAULT=write:3:28        the third write fails with error number 28 (ENOSPC)
//   PMAPTRAIN_FAULT=write:3:28:all    so do all after it
//   PMAPTRAIN_FAULT_BELOW=/tmp/x      only what happens in this folder counts; threads count wherever they are
//   PMAPTRAIN_FAULT_COUNTS=FILE       how often each kind was called, written when the process ends
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/app/preloaded.h"

namespace {

constexpr std::array kinds = {"open", "write", "fsync", "rename", "mkdir", "mmap", "thread", "symlink", "unlink"};
enum Kind : unsigned {
  open_kind,
  write_kind,
  fsync_kind,
  rename_kind,
  mkdir_kind,
  mmap_kind,
  thread_kind,
  symlink_kind,
  unlink_kind
};

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

bool counts_for(int directory, const char* path) {
  if (path[0] == '/' || directory == AT_FDCWD) return is_below(path);
  return counts_for(directory);
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  if (counts_for(directory, path) && fails(open_kind)) return -1;
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  return real(directory, path, flags, mode);
}

}  // namespace

extern "C" {

PMAPTRAIN_OPEN(open)
PMAPTRAIN_OPEN(open64)
PMAPTRAIN_OPENAT(openat)
PMAPTRAIN_OPENAT(openat64)

ssize_t write(int fd, const void* bytes, std::size_t size) {
  if (counts_for(fd) && fails(write_kind)) return -1;
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  return real(fd, bytes, size);
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  if (counts_for(fd) && fails(write_kind)) return -1;
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite");
  return real(fd, bytes, size, at);
}

int fsync(int fd) {
  if (counts_for(fd) && fails(fsync_kind)) return -1;
  static const auto real = next<int (*)(int)>("fsync");
  return real(fd);
}

int fdatasync(int fd) {
  if (counts_for(fd) && fails(fsync_kind)) return -1;
  static const auto real = next<int (*)(int)>("fdatasync");
  return real(fd);
}

int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  if (counts_for(to_directory, to) && fails(rename_kind)) return -1;
  static const auto real = next<int (*)(int, const char*, int, const char*)>("renameat");
  return real(from_directory, from, to_directory, to);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  if (counts_for(to_directory, to) && fails(rename_kind)) return -1;
  static const auto real = next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  return real(from_directory, from, to_directory, to, flags);
}

int mkdir(const char* path, mode_t mode) noexcept {
  if (counts_for(AT_FDCWD, path) && fails(mkdir_kind)) return -1;
  static const auto real = next<int (*)(const char*, mode_t)>("mkdir");
  return real(path, mode);
}

int mkdirat(int directory, const char* path, mode_t mode) noexcept {
  if (counts_for(directory, path) && fails(mkdir_kind)) return -1;
  static const auto real = next<int (*)(int, const char*, mode_t)>("mkdirat");
  return real(directory, path, mode);
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

int symlinkat(const char* target, int directory, const char* path) noexcept {
  if (counts_for(directory, path) && fails(symlink_kind)) return -1;
  static const auto real = next<int (*)(const char*, int, const char*)>("symlinkat");
  return real(target, directory, path);
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  if (counts_for(directory, path) && fails(unlink_kind)) return -1;
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  return real(directory, path, flags);
}

}  // extern "C"
