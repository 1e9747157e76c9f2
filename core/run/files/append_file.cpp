#include "core/run/files/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "core/base/text.h"
#include "core/run/files/file_system.h"

namespace pmaptrain::run {
namespace {

std::string kept(const RecordKind& kind) {
  return fmt::format("its {}s are kept in memory and tried again", kind.name);
}

}  // namespace

std::size_t line_bytes(std::string_view bytes) {
  const std::size_t end = bytes.find('\n');
  return end == std::string_view::npos ? bytes.size() : end + 1;
}

std::uint64_t whole_lines(int fd, std::uint64_t bytes, const std::filesystem::path& shown) {
  std::array<char, 4096> block;
  while (bytes > 0) {
    const std::size_t count = std::min<std::uint64_t>(block.size(), bytes);
    std::size_t read = 0;
    while (read < count) {
      const ssize_t got = ::pread(fd, block.data() + read, count - read, static_cast<off_t>(bytes - count + read));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_file(shown, "read", errno);
      if (got == 0) break;  // the file was cut meanwhile
      read += static_cast<std::size_t>(got);
    }
    const std::size_t end = std::string_view(block.data(), read).rfind('\n');
    if (end != std::string_view::npos) return bytes - count + end + 1;
    bytes -= count;
  }
  return 0;
}

AppendFile::AppendFile(FilePlace place, Warn warn, RecordKind kind)
    : place_(std::move(place)), warn_(std::move(warn)), kind_(kind) {
  open();
}

bool AppendFile::open() {
  if (file_) return true;
  file_ = Descriptor(file_system().open_at(place_.directory, place_.name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC));
  if (!file_) failed(errno, kept(kind_));
  return static_cast<bool>(file_);
}

void AppendFile::write(std::string_view records) {
  waiting_ += records;
  try_again();
  std::size_t given_up = 0;
  for (; waiting_.size() - given_up > most_waiting; ++lost_) {
    given_up += kind_.first(std::string_view(waiting_).substr(given_up));
  }
  waiting_.erase(0, given_up);
}

void AppendFile::try_again() {
  if (waiting_.empty() || !open()) return;
  const off_t before = ::lseek(file_.get(), 0, SEEK_END);
  const std::size_t written = write_all(file_.get(), std::as_bytes(std::span(waiting_)));
  if (written == waiting_.size()) {
    waiting_.clear();
    return;
  }
  const int error = errno;
  // Half a record would not parse, so it is cut off. A pipe or device cannot be cut: there the rest is written later.
  const bool taken_back = before >= 0 && file_system().ftruncate(file_.get(), before) == 0;
  if (!taken_back) waiting_.erase(0, written);
  failed(error, kept(kind_));
}

void AppendFile::flush() {
  try_again();
  if (!open() || file_system().fdatasync(file_.get()) == 0 || errno == EINVAL) return;  // EINVAL: a pipe, a device
  flush_failed_ = true;
  failed(errno, fmt::format("its last {}s may be lost", kind_.name));
}

std::uint64_t AppendFile::bytes() const {
  struct stat status = {};
  return file_ && ::fstat(file_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

std::string AppendFile::missing() const {
  struct stat status = {};
  if (file_ && ::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 0) {
    return fmt::format("'{}' was removed while the run went on", place_.shown.string());
  }
  const std::int64_t records = lost_ + count_waiting();
  if (records == 0 && !flush_failed_) return "";
  const std::string what =
      records == 0 ? fmt::format("may lack its last {}s", kind_.name) : "lacks " + counted(records, kind_.name);
  return fmt::format("'{}' {}: {}", place_.shown.string(), what, problem_);
}

std::int64_t AppendFile::count_waiting() const {
  std::int64_t count = 0;
  for (std::string_view rest = waiting_; !rest.empty(); rest.remove_prefix(kind_.first(rest))) ++count;
  return count;
}

void AppendFile::failed(int error, std::string_view what) {
  problem_ = system_words(error);
  if (warned_ || !warn_) return;
  warned_ = true;
  warn_(fmt::format("'{}' cannot be written: {}; {}", place_.shown.string(), problem_, what));
}

}  // namespace pmaptrain::run
