#include "core/run/files/file_system.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cassert>
#include <cerrno>
#include <system_error>

namespace pmaptrain::run {
namespace {

std::atomic<FileSystem*> installed = nullptr;

}  // namespace

int FileSystem::open_at(int directory, const std::string& path, int flags) {
  constexpr mode_t mode = 0666;
  return ::openat(directory, path.c_str(), flags, mode);
}

ssize_t FileSystem::write(int fd, std::span<const std::byte> bytes) { return ::write(fd, bytes.data(), bytes.size()); }

int FileSystem::ftruncate(int fd, off_t size) { return ::ftruncate(fd, size); }
int FileSystem::fsync(int fd) { return ::fsync(fd); }
int FileSystem::fdatasync(int fd) { return ::fdatasync(fd); }
int FileSystem::close(int fd) { return ::close(fd); }
int FileSystem::flock(int fd, int operation) { return ::flock(fd, operation); }

int FileSystem::rename_at(int directory, const std::string& from, const std::string& to) {
  return ::renameat(directory, from.c_str(), directory, to.c_str());
}

int FileSystem::exchange_at(int directory, const std::string& a, const std::string& b) {
  return ::renameat2(directory, a.c_str(), directory, b.c_str(), RENAME_EXCHANGE);
}

int FileSystem::mkdir_at(int directory, const std::string& path) {
  constexpr mode_t mode = 0777;
  return ::mkdirat(directory, path.c_str(), mode);
}

int FileSystem::symlink_at(const std::string& target, int directory, const std::string& path) {
  return ::symlinkat(target.c_str(), directory, path.c_str());
}

int FileSystem::unlink_at(int directory, const std::string& path, int flags) {
  return ::unlinkat(directory, path.c_str(), flags);
}

FileSystem& file_system() {
  static FileSystem real;
  FileSystem* const other = installed.load(std::memory_order_acquire);
  return other != nullptr ? *other : real;
}

InstalledFileSystem::InstalledFileSystem(FileSystem& other) {
  [[maybe_unused]] FileSystem* const before = installed.exchange(&other, std::memory_order_acq_rel);
  assert(before == nullptr);
}

InstalledFileSystem::~InstalledFileSystem() { installed.store(nullptr, std::memory_order_release); }

int make_directories(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return 0;
  if (const std::filesystem::path above = path.parent_path(); !above.empty() && above != path) {
    if (const int error = make_directories(above); error != 0) return error;
  }
  if (file_system().mkdir_at(AT_FDCWD, path.string()) == 0) return 0;
  if (errno != EEXIST) return errno;
  return std::filesystem::is_directory(path, ignored) ? 0 : ENOTDIR;
}

}  // namespace pmaptrain::run
