// The calls of the system by which a run makes, changes, locks and flushes its files: the seam at which tests let a
// call fail, record all of them, or have the disk lose what was not flushed. Whatever only reads or asks calls the
// system itself.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace pmaptrain::train {

// The real one. Each function is the call of that name: -1, with errno set, where it fails. `directory` is open, or
// AT_FDCWD. Called from several threads.
class FileSystem {
 public:
  FileSystem() = default;
  virtual ~FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;

  virtual int open_at(int directory, const std::string& path, int flags);  // a new file has mode 0666 less the umask
  virtual ssize_t write(int fd, std::span<const std::byte> bytes);
  virtual int ftruncate(int fd, off_t size);
  virtual int fsync(int fd);
  virtual int fdatasync(int fd);
  virtual int close(int fd);  // of a file that was written, where its result matters
  virtual int flock(int fd, int operation);
  virtual int rename_at(int directory, const std::string& from, const std::string& to);
  virtual int exchange_at(int directory, const std::string& a, const std::string& b);  // RENAME_EXCHANGE
  virtual int mkdir_at(int directory, const std::string& path);
  virtual int symlink_at(const std::string& target, int directory, const std::string& path);
  virtual int unlink_at(int directory, const std::string& path, int flags = 0);  // flags: 0, or AT_REMOVEDIR
};

// The one that all threads use: the real one, but while a test installs another.
FileSystem& file_system();

// Installs another one, which outlives this, until the end of the scope. One at a time; no run is under way when it
// begins or ends.
class InstalledFileSystem {
 public:
  explicit InstalledFileSystem(FileSystem& other);
  ~InstalledFileSystem();
  InstalledFileSystem(const InstalledFileSystem&) = delete;
  InstalledFileSystem& operator=(const InstalledFileSystem&) = delete;
};

// Makes a directory, and those above it that are not there. Returns 0, or the error number.
int make_directories(const std::filesystem::path& path);

}  // namespace pmaptrain::train
