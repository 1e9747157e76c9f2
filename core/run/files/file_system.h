// The system calls by which a run creates, changes, locks and flushes its files. Tests replace them to let a call fail,
// to record all calls, or to lose what was not flushed to the disk. Code that only reads makes its system calls
// directly.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace pmaptrain::run {

// Each function makes the system call of its name, and returns -1, with errno set, on failure. `directory` is an open
// directory, or AT_FDCWD. Called from several threads.
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
  virtual int close(int fd);  // of a file that was written; its result matters
  virtual int flock(int fd, int operation);
  virtual int rename_at(int directory, const std::string& from, const std::string& to);
  virtual int exchange_at(int directory, const std::string& a, const std::string& b);  // RENAME_EXCHANGE
  virtual int mkdir_at(int directory, const std::string& path);
  virtual int symlink_at(const std::string& target, int directory, const std::string& path);
  virtual int unlink_at(int directory, const std::string& path, int flags = 0);  // flags: 0, or AT_REMOVEDIR
};

// The file system that all threads use: the real one, unless a test has installed another one.
FileSystem& file_system();

// Installs another file system until the end of the scope. `other` outlives this object. Only one can be installed at a
// time, and no run may be active when this object is made or destroyed.
class InstalledFileSystem {
 public:
  explicit InstalledFileSystem(FileSystem& other);
  ~InstalledFileSystem();
  InstalledFileSystem(const InstalledFileSystem&) = delete;
  InstalledFileSystem& operator=(const InstalledFileSystem&) = delete;
};

// Creates a directory and its parents if they do not exist. Returns 0, or the error number.
int make_directories(const std::filesystem::path& path);

}  // namespace pmaptrain::run
