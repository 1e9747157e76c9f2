#include "core/train/record_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "core/base/text.h"

namespace pmaptrain::train {
namespace {

constexpr std::string_view kept = "its lines are kept in memory and tried again";

}  // namespace

AppendFile::AppendFile(FilePlace place, Warn warn) : place_(std::move(place)), warn_(std::move(warn)) { open(); }

bool AppendFile::open() {
  if (file_) return true;
  file_ = Descriptor(::openat(place_.directory, place_.name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) failed(errno, kept);
  return static_cast<bool>(file_);
}

void AppendFile::write(std::string_view lines) {
  waiting_ += lines;
  try_again();
  if (waiting_.size() <= most_waiting) return;
  const std::size_t end = waiting_.find('\n', waiting_.size() - most_waiting - 1);
  const std::size_t given_up = end == std::string::npos ? waiting_.size() : end + 1;
  lost_ += std::count(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(given_up), '\n');
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
  // Half a line would not parse. What is no regular file cannot be cut: there the rest follows when it can.
  const bool taken_back = before >= 0 && ::ftruncate(file_.get(), before) == 0;
  if (!taken_back) waiting_.erase(0, written);
  failed(error, kept);
}

void AppendFile::flush() {
  try_again();
  if (!file_ || ::fdatasync(file_.get()) == 0 || errno == EINVAL) return;  // EINVAL: a pipe, a device
  flush_failed_ = true;
  failed(errno, "its last lines may be lost");
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
  const std::int64_t lines = lost_ + std::count(waiting_.begin(), waiting_.end(), '\n');
  if (lines == 0 && !flush_failed_) return "";
  const std::string what = lines == 0 ? "may lack its last lines" : "lacks " + counted(lines, "line");
  return fmt::format("'{}' {}: {}", place_.shown.string(), what, problem_);
}

void AppendFile::failed(int error, std::string_view what) {
  problem_ = system_words(error);
  if (warned_ || !warn_) return;
  warned_ = true;
  warn_(fmt::format("'{}' cannot be written: {}; {}", place_.shown.string(), problem_, what));
}

}  // namespace pmaptrain::train
