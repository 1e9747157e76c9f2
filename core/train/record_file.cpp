#include "core/train/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

#include "core/base/error.h"

namespace pmaptrain::train {
namespace {

std::string words_for(int error) { return std::generic_category().message(error); }

std::string help_for(int error) {
  switch (error) {
    case ENOSPC: return "free some space, or write to another disk with --run-dir";
    case EFBIG: return "a file may not become so large here: raise the limit (ulimit -f), or write to another disk";
    case EDQUOT: return "your disk quota is used up: free some space, or write to another disk with --run-dir";
    case EACCES:
    case EPERM:
    case EROFS: return "write to a folder that is yours with --run-dir";
    default: return "";
  }
}

// Removes the temporary file unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::filesystem::path path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::filesystem::path& path() const { return path_; }
  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

void Descriptor::reset() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

bool write_all(int fd, std::span<const std::byte> bytes) {
  constexpr std::size_t most = std::numeric_limits<std::int32_t>::max() / 2;  // Linux writes at most 2 GiB at once
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), std::min(bytes.size(), most));
    if (count < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

void fail_file(const std::filesystem::path& path, std::string_view done, int error) {
  std::string message = fmt::format("'{}' cannot be {}: {}", path.string(), done, words_for(error));
  throw Error(ExitStatus::failed, Diagnostic{"resource", {}, std::move(message), help_for(error), {}});
}

AppendFile::AppendFile(std::filesystem::path path, Warn warn) : path_(std::move(path)), warn_(std::move(warn)) {
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) give_up(errno);
}

void AppendFile::write(std::string_view text) {
  if (!file_) return;
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  if (write_all(file_.get(), std::as_bytes(std::span(text)))) return;
  const int error = errno;
  // Half a line would not parse. What is no regular file cannot be cut, and holds none.
  if (before >= 0 && ::ftruncate(file_.get(), before) != 0) errno = error;
  give_up(error);
}

void AppendFile::give_up(int error) {
  file_.reset();
  if (warn_) {
    warn_(fmt::format("'{}' cannot be written: {}; training goes on without it", path_.string(), words_for(error)));
  }
}

namespace {

// Whether the file is a device or a pipe: to be written to, not replaced.
bool is_special(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
         !std::filesystem::is_directory(status);
}

void write_parts(const Descriptor& file, const std::filesystem::path& path,
                 std::span<const std::span<const std::byte>> parts) {
  if (!file) fail_file(path, "written", errno);
  for (const std::span<const std::byte> part : parts) {
    if (!write_all(file.get(), part)) fail_file(path, "written", errno);
  }
}

}  // namespace

void write_whole(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts) {
  if (is_special(path)) {
    write_parts(Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC)), path, parts);
    return;
  }
  Temporary temporary(folder_of(path) / fmt::format(".tmp-{}-{}", path.filename().string(), ::getpid()));
  {
    const Descriptor file(::open(temporary.path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    write_parts(file, path, parts);
    if (::fsync(file.get()) != 0) fail_file(path, "written", errno);
  }
  if (::rename(temporary.path().c_str(), path.c_str()) != 0) fail_file(path, "written", errno);
  temporary.keep();
  flush_to_disk(folder_of(path));
}

void write_whole(const std::filesystem::path& path, std::string_view text) {
  const std::array parts{std::as_bytes(std::span(text))};
  write_whole(path, std::span<const std::span<const std::byte>>(parts));
}

void flush_to_disk(const std::filesystem::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail_file(path, "flushed to the disk", errno);
  // Some file systems cannot flush a directory and say EINVAL; they order renames themselves.
  if (::fsync(file.get()) != 0 && errno != EINVAL) fail_file(path, "flushed to the disk", errno);
}

}  // namespace pmaptrain::train
