// Loaded before the C library: records what a process changes below a folder, in order.
//
//   PMAPTRAIN_TRACE=FILE           where the records are appended
//   PMAPTRAIN_TRACE_BELOW=/tmp/x   only what happens in this folder is recorded
//   PMAPTRAIN_TRACE_KILL=7         the process is killed after its seventh record
//
// A record is a line of words, behind which the bytes of a write follow. Files and directories are numbered as the file
// system numbers them, so that a record holds whatever they are named by then:
//
//   create DIRECTORY NAME FILE     mkdir DIRECTORY NAME DIRECTORY     link DIRECTORY NAME LINK TARGET
//   write FILE OFFSET SIZE         truncate FILE SIZE                 sync FILE-OR-DIRECTORY
//   rename DIRECTORY FROM TO       exchange DIRECTORY NAME NAME       unlink DIRECTORY NAME
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "tests/app/preloaded.h"

namespace {

// Held during a call and its record, so that the records are in the order of the calls.
std::mutex mutex;
char below[PATH_MAX];
int trace = -1;
long records = 0, killed_after = 0;

void append(const void* bytes, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  const char* const from = static_cast<const char*>(bytes);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t count = real(trace, from + done, size - done);
    if (count <= 0) std::abort();  // a trace with a gap would show nothing
    done += static_cast<std::size_t>(count);
  }
}

template <class... Words>
void append_line(const char* format, Words... words) {
  char line[3 * PATH_MAX];
  append(line, static_cast<std::size_t>(std::snprintf(line, sizeof line, format, words...)));
}

void end_record() {
  if (++records == killed_after) ::kill(::getpid(), SIGKILL);
}

template <class... Words>
void record(const char* format, Words... words) {
  append_line(format, words...);
  end_record();
}

void record_write(int fd, const void* bytes, ssize_t size, off_t at) {
  struct stat status = {};
  ::fstat(fd, &status);
  append_line("write %lu %ld %zd\n", status.st_ino, static_cast<long>(at), size);
  append(bytes, static_cast<std::size_t>(size));
  end_record();
}

__attribute__((constructor)) void read_environment() {
  const char* const file = std::getenv("PMAPTRAIN_TRACE");
  const char* const folder = std::getenv("PMAPTRAIN_TRACE_BELOW");
  if (file == nullptr || folder == nullptr) return;
  std::snprintf(below, sizeof below, "%s", folder);
  if (const char* const after = std::getenv("PMAPTRAIN_TRACE_KILL")) killed_after = std::atol(after);
  static const auto real = next<int (*)(const char*, int, ...)>("open");
  trace = real(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

bool is_below(int fd) {
  if (trace < 0) return false;
  char link[64], path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = ::readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = '\0';
  return std::strncmp(path, below, std::strlen(below)) == 0;
}

unsigned long number_of(int fd) {
  struct stat status = {};
  return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
}

// An entry of a directory: the directory's number, and the name in it.
struct Entry {
  unsigned long directory = 0, target = 0;  // target: what the entry leads to, 0 where there is none
  char name[PATH_MAX] = "";
  bool recorded = false;
};

Entry entry_of(int directory, const char* path) {
  Entry entry;
  if (trace < 0) return entry;
  char above[PATH_MAX];
  std::snprintf(above, sizeof above, "%s", path);
  while (std::strlen(above) > 1 && above[std::strlen(above) - 1] == '/') above[std::strlen(above) - 1] = '\0';
  char* const slash = std::strrchr(above, '/');
  std::snprintf(entry.name, sizeof entry.name, "%s", slash != nullptr ? slash + 1 : above);
  if (slash != nullptr) slash[1] = '\0';
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  const int fd = real(directory, slash != nullptr ? above : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return entry;
  entry.recorded = is_below(fd);
  entry.directory = number_of(fd);
  struct stat status = {};
  if (::fstatat(fd, entry.name, &status, AT_SYMLINK_NOFOLLOW) == 0) entry.target = status.st_ino;
  ::close(fd);
  return entry;
}

int open_at(int directory, const char* path, int flags, mode_t mode) {
  static const auto real = next<int (*)(int, const char*, int, ...)>("openat");
  if (trace < 0 || (flags & (O_CREAT | O_TRUNC)) == 0) return real(directory, path, flags, mode);
  const std::lock_guard lock(mutex);
  const Entry before = entry_of(directory, path);
  const int fd = real(directory, path, flags, mode);
  if (fd < 0 || !before.recorded) return fd;
  if (before.target == 0) record("create %lu %s %lu\n", before.directory, before.name, number_of(fd));
  if (before.target != 0 && (flags & O_TRUNC) != 0) record("truncate %lu 0\n", before.target);
  return fd;
}

int make_directory(int directory, const char* path, mode_t mode) {
  static const auto real = next<int (*)(int, const char*, mode_t)>("mkdirat");
  const std::lock_guard lock(mutex);
  const int result = real(directory, path, mode);
  if (const Entry made = entry_of(directory, path); result == 0 && made.recorded) {
    record("mkdir %lu %s %lu\n", made.directory, made.name, made.target);
  }
  return result;
}

int rename_at(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  static const auto real = next<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  const std::lock_guard lock(mutex);
  const Entry source = entry_of(from_directory, from), place = entry_of(to_directory, to);
  const int result = real(from_directory, from, to_directory, to, flags);
  if (result != 0 || !place.recorded) return result;
  if (source.directory != place.directory) std::abort();  // there is no record for it
  record("%s %lu %s %s\n", (flags & RENAME_EXCHANGE) != 0 ? "exchange" : "rename", place.directory, source.name,
         place.name);
  return result;
}

int sync(const char* name, int fd) {
  const auto real = next<int (*)(int)>(name);
  const std::lock_guard lock(mutex);
  const int result = real(fd);
  if (result == 0 && is_below(fd)) record("sync %lu\n", number_of(fd));
  return result;
}

}  // namespace

extern "C" {

PMAPTRAIN_OPEN(open)
PMAPTRAIN_OPEN(open64)
PMAPTRAIN_OPENAT(openat)
PMAPTRAIN_OPENAT(openat64)

ssize_t write(int fd, const void* bytes, std::size_t size) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t)>("write");
  if (!is_below(fd)) return real(fd, bytes, size);
  const std::lock_guard lock(mutex);
  struct stat status = {};
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t at = appends && ::fstat(fd, &status) == 0 ? status.st_size : ::lseek(fd, 0, SEEK_CUR);
  const ssize_t written = real(fd, bytes, size);
  if (written > 0) record_write(fd, bytes, written, at);
  return written;
}

ssize_t pwrite(int fd, const void* bytes, std::size_t size, off_t at) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite");
  if (!is_below(fd)) return real(fd, bytes, size, at);
  const std::lock_guard lock(mutex);
  const ssize_t written = real(fd, bytes, size, at);
  if (written > 0) record_write(fd, bytes, written, at);
  return written;
}

int ftruncate(int fd, off_t size) noexcept {
  static const auto real = next<int (*)(int, off_t)>("ftruncate");
  const std::lock_guard lock(mutex);
  const int result = real(fd, size);
  if (result == 0 && is_below(fd)) record("truncate %lu %ld\n", number_of(fd), static_cast<long>(size));
  return result;
}

int fsync(int fd) { return sync("fsync", fd); }
int fdatasync(int fd) { return sync("fdatasync", fd); }

int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  return rename_at(from_directory, from, to_directory, to, 0);
}
int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  return rename_at(from_directory, from, to_directory, to, flags);
}
int rename(const char* from, const char* to) noexcept { return rename_at(AT_FDCWD, from, AT_FDCWD, to, 0); }

int mkdir(const char* path, mode_t mode) noexcept { return make_directory(AT_FDCWD, path, mode); }
int mkdirat(int directory, const char* path, mode_t mode) noexcept { return make_directory(directory, path, mode); }

int symlinkat(const char* target, int directory, const char* path) noexcept {
  static const auto real = next<int (*)(const char*, int, const char*)>("symlinkat");
  const std::lock_guard lock(mutex);
  const int result = real(target, directory, path);
  if (const Entry made = entry_of(directory, path); result == 0 && made.recorded) {
    record("link %lu %s %lu %s\n", made.directory, made.name, made.target, target);
  }
  return result;
}

int unlinkat(int directory, const char* path, int flags) noexcept {
  static const auto real = next<int (*)(int, const char*, int)>("unlinkat");
  const std::lock_guard lock(mutex);
  const Entry before = entry_of(directory, path);
  const int result = real(directory, path, flags);
  if (result == 0 && before.recorded) record("unlink %lu %s\n", before.directory, before.name);
  return result;
}
int unlink(const char* path) noexcept { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char* path) noexcept { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

}  // extern "C"
