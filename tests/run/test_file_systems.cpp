#include "tests/run/test_file_systems.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

#include "core/base/descriptor.h"
#include "tests/files.h"

namespace pmaptrain::testing {

namespace fs = std::filesystem;

// ---- failures ------------------------------------------------------------------------------------------------------

const char* to_string(Call call) {
  constexpr std::array<const char*, call_kinds> names = {
      "open", "write", "truncate", "flush", "close", "lock", "rename", "exchange", "make_directory", "link", "remove"};
  return names.at(static_cast<std::size_t>(call));
}

bool FailingFileSystem::fails(Call call) {
  const int number = ++counts_[static_cast<std::size_t>(call)];
  if (!fault_ || fault_->call != call) return false;
  const int from = fault_->number + (fault_->torn ? 1 : 0);
  if (fault_->ever_after ? number < from : number != from) return false;
  errno = fault_->error;
  return true;
}

int FailingFileSystem::open_at(int directory, const std::string& path, int flags) {
  return fails(Call::open) ? -1 : FileSystem::open_at(directory, path, flags);
}

ssize_t FailingFileSystem::write(int fd, std::span<const std::byte> bytes) {
  if (fails(Call::write)) return -1;
  const bool torn = fault_ && fault_->torn && count(Call::write) == fault_->number;
  return FileSystem::write(fd, torn ? bytes.first((bytes.size() + 1) / 2) : bytes);
}

int FailingFileSystem::ftruncate(int fd, off_t size) {
  return fails(Call::truncate) ? -1 : FileSystem::ftruncate(fd, size);
}

int FailingFileSystem::fsync(int fd) { return fails(Call::flush) ? -1 : FileSystem::fsync(fd); }

int FailingFileSystem::fdatasync(int fd) { return fails(Call::flush) ? -1 : FileSystem::fdatasync(fd); }

int FailingFileSystem::close(int fd) {
  const int result = FileSystem::close(fd);
  return fails(Call::close) ? -1 : result;
}

int FailingFileSystem::flock(int fd, int operation) {
  return fails(Call::lock) ? -1 : FileSystem::flock(fd, operation);
}

int FailingFileSystem::rename_at(int directory, const std::string& from, const std::string& to) {
  return fails(Call::rename) ? -1 : FileSystem::rename_at(directory, from, to);
}

int FailingFileSystem::exchange_at(int directory, const std::string& a, const std::string& b) {
  return fails(Call::exchange) ? -1 : FileSystem::exchange_at(directory, a, b);
}

int FailingFileSystem::mkdir_at(int directory, const std::string& path) {
  return fails(Call::make_directory) ? -1 : FileSystem::mkdir_at(directory, path);
}

int FailingFileSystem::symlink_at(const std::string& target, int directory, const std::string& path) {
  return fails(Call::link) ? -1 : FileSystem::symlink_at(target, directory, path);
}

int FailingFileSystem::unlink_at(int directory, const std::string& path, int flags) {
  return fails(Call::remove) ? -1 : FileSystem::unlink_at(directory, path, flags);
}

// ---- records -------------------------------------------------------------------------------------------------------

std::string to_string(const Change& change) {
  constexpr std::array<const char*, 9> names = {"create", "make_directory", "link",     "write", "truncate",
                                                "flush",  "rename",         "exchange", "remove"};
  std::string text = names.at(static_cast<std::size_t>(change.kind));
  text += " " + std::to_string(change.of);
  for (const std::string& name : {change.name, change.other}) text += name.empty() ? "" : " " + name;
  if (!change.bytes.empty()) text += " " + std::to_string(change.bytes.size()) + " bytes";
  return text;
}

RecordingFileSystem::RecordingFileSystem(const fs::path& directory) {
  struct stat status = {};
  if (::stat(directory.c_str(), &status) != 0) throw std::runtime_error("there is no " + directory.string());
  numbers_[{status.st_dev, status.st_ino}] = top;
  add_what_is_there(top, directory);
  first_ = changes_.size();
}

void RecordingFileSystem::add_what_is_there(Number directory, const fs::path& path) {
  for (const fs::directory_entry& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    const Number made = new_number(AT_FDCWD, entry.path().string());
    if (entry.is_symlink()) {
      changes_.push_back({Change::Kind::link, directory, made, name, fs::read_symlink(entry.path()).string()});
    } else if (entry.is_directory()) {
      changes_.push_back({Change::Kind::make_directory, directory, made, name});
      add_what_is_there(made, entry.path());
    } else {
      changes_.push_back({Change::Kind::create, directory, made, name});
      changes_.push_back({Change::Kind::write, made, 0, {}, {}, 0, test::read_text(entry.path())});
      changes_.push_back({Change::Kind::flush, made});
    }
  }
  changes_.push_back({Change::Kind::flush, directory});
}

RecordingFileSystem::Entry RecordingFileSystem::entry_of(int directory, const std::string& path) const {
  const fs::path whole = path;
  const std::string above = whole.has_parent_path() ? whole.parent_path().string() : ".";
  const Descriptor fd(::openat(directory, above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return {};
  Entry entry{number_of(fd.get()), whole.filename().string()};
  struct stat status = {};
  entry.there = ::fstatat(fd.get(), entry.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0;
  return entry;
}

Number RecordingFileSystem::number_of(int fd) const {
  struct stat status = {};
  if (::fstat(fd, &status) != 0) return 0;
  const auto found = numbers_.find({status.st_dev, status.st_ino});
  return found != numbers_.end() ? found->second : 0;
}

// What has just been made may have an inode that something else had before.
Number RecordingFileSystem::new_number(int directory, const std::string& path) {
  struct stat status = {};
  if (::fstatat(directory, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    throw std::runtime_error(path + " is gone");
  }
  return numbers_[{status.st_dev, status.st_ino}] = ++last_;
}

void RecordingFileSystem::record(Change change) {
  changes_.push_back(std::move(change));
  changed();
}

int RecordingFileSystem::open_at(int directory, const std::string& path, int flags) {
  if ((flags & (O_CREAT | O_TRUNC)) == 0) return FileSystem::open_at(directory, path, flags);
  const std::lock_guard lock(mutex_);
  const Entry entry = entry_of(directory, path);
  const int fd = FileSystem::open_at(directory, path, flags);
  if (fd < 0 || entry.directory == 0) return fd;
  if (!entry.there) {
    record({Change::Kind::create, entry.directory, new_number(directory, path), entry.name});
  } else if ((flags & O_TRUNC) != 0) {
    record({Change::Kind::truncate, number_of(fd)});
  }
  return fd;
}

ssize_t RecordingFileSystem::write(int fd, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  const bool appends = (::fcntl(fd, F_GETFL) & O_APPEND) != 0;
  const off_t at = ::lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
  const ssize_t written = FileSystem::write(fd, bytes);
  if (const Number of = number_of(fd); written > 0 && of != 0) {
    const auto* const text = reinterpret_cast<const char*>(bytes.data());
    record({Change::Kind::write, of, 0, {}, {}, static_cast<std::size_t>(at), {text, text + written}});
  }
  return written;
}

int RecordingFileSystem::ftruncate(int fd, off_t size) {
  const std::lock_guard lock(mutex_);
  const int result = FileSystem::ftruncate(fd, size);
  if (const Number of = number_of(fd); result == 0 && of != 0) {
    record({Change::Kind::truncate, of, 0, {}, {}, static_cast<std::size_t>(size)});
  }
  return result;
}

int RecordingFileSystem::flushed(int fd, int result) {
  if (const Number of = number_of(fd); result == 0 && of != 0) record({Change::Kind::flush, of});
  return result;
}

int RecordingFileSystem::fsync(int fd) {
  const std::lock_guard lock(mutex_);
  return flushed(fd, FileSystem::fsync(fd));
}

int RecordingFileSystem::fdatasync(int fd) {
  const std::lock_guard lock(mutex_);
  return flushed(fd, FileSystem::fdatasync(fd));
}

int RecordingFileSystem::renamed(Change::Kind kind, int directory, const std::string& from, const std::string& to) {
  const std::lock_guard lock(mutex_);
  const Entry source = entry_of(directory, from), place = entry_of(directory, to);
  const int result = kind == Change::Kind::exchange ? FileSystem::exchange_at(directory, from, to)
                                                    : FileSystem::rename_at(directory, from, to);
  if (result != 0 || place.directory == 0) return result;
  if (source.directory != place.directory) throw std::runtime_error("a rename between directories has no record");
  record({kind, place.directory, 0, source.name, place.name});
  return result;
}

int RecordingFileSystem::rename_at(int directory, const std::string& from, const std::string& to) {
  return renamed(Change::Kind::rename, directory, from, to);
}

int RecordingFileSystem::exchange_at(int directory, const std::string& a, const std::string& b) {
  return renamed(Change::Kind::exchange, directory, a, b);
}

int RecordingFileSystem::mkdir_at(int directory, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const Entry entry = entry_of(directory, path);
  const int result = FileSystem::mkdir_at(directory, path);
  if (result == 0 && entry.directory != 0) {
    record({Change::Kind::make_directory, entry.directory, new_number(directory, path), entry.name});
  }
  return result;
}

int RecordingFileSystem::symlink_at(const std::string& target, int directory, const std::string& path) {
  const std::lock_guard lock(mutex_);
  const Entry entry = entry_of(directory, path);
  const int result = FileSystem::symlink_at(target, directory, path);
  if (result == 0 && entry.directory != 0) {
    record({Change::Kind::link, entry.directory, new_number(directory, path), entry.name, target});
  }
  return result;
}

int RecordingFileSystem::unlink_at(int directory, const std::string& path, int flags) {
  const std::lock_guard lock(mutex_);
  const Entry entry = entry_of(directory, path);
  const int result = FileSystem::unlink_at(directory, path, flags);
  if (result == 0 && entry.directory != 0) record({Change::Kind::remove, entry.directory, 0, entry.name});
  return result;
}

}  // namespace pmaptrain::testing
