// File systems that tests install: one that fails, and one that records what is changed.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run/files/file_system.h"

namespace pmaptrain::testing {

// ---- failures ------------------------------------------------------------------------------------------------------

enum class Call : std::uint8_t {
  open,
  write,
  truncate,
  flush,  // fsync and fdatasync
  close,
  lock,
  rename,
  exchange,
  make_directory,
  link,
  remove,
};
inline constexpr std::size_t call_kinds = 11;
const char* to_string(Call call);

// The n-th call of a kind fails, or all from the n-th on.
struct Fault {
  Call call = Call::open;
  int number = 0;  // from 1
  int error = 0;   // what errno says
  bool ever_after = false;
  bool torn = false;  // of a write: the n-th writes the first half, and the one after it fails
};

// The real one, but that it counts its calls and lets some fail, which then do nothing. A close that fails closes.
class FailingFileSystem : public run::FileSystem {
 public:
  FailingFileSystem() = default;
  explicit FailingFileSystem(const Fault& fault) : fault_(fault) {}
  int count(Call call) const { return counts_[static_cast<std::size_t>(call)]; }

  int open_at(int directory, const std::string& path, int flags) override;
  ssize_t write(int fd, std::span<const std::byte> bytes) override;
  int ftruncate(int fd, off_t size) override;
  int fsync(int fd) override;
  int fdatasync(int fd) override;
  int close(int fd) override;
  int flock(int fd, int operation) override;
  int rename_at(int directory, const std::string& from, const std::string& to) override;
  int exchange_at(int directory, const std::string& a, const std::string& b) override;
  int mkdir_at(int directory, const std::string& path) override;
  int symlink_at(const std::string& target, int directory, const std::string& path) override;
  int unlink_at(int directory, const std::string& path, int flags) override;

 private:
  bool fails(Call call);

  const std::optional<Fault> fault_;
  std::array<std::atomic<int>, call_kinds> counts_ = {};
};

// ---- records -------------------------------------------------------------------------------------------------------

using Number = std::uint64_t;  // of a file, link or directory, from 1; none has the number of another

// A change in a directory (of, its number) or of a file.
struct Change {
  enum class Kind : std::uint8_t { create, make_directory, link, write, truncate, flush, rename, exchange, remove };
  Kind kind = Kind::create;
  Number of = 0, made = 0;            // made: what a directory has now, under `name`
  std::string name = {}, other = {};  // other: the second name, or a link's target
  std::size_t at = 0;                 // where bytes are written, or the size that is left
  std::string bytes = {};
};
std::string to_string(const Change& change);

// The real one, but that it records what succeeds below a directory, whichever thread does it. What is there at the
// beginning is recorded first, as if it were made and flushed.
class RecordingFileSystem : public run::FileSystem {
 public:
  static constexpr Number top = 1;
  explicit RecordingFileSystem(const std::filesystem::path& directory);

  // Those before `first` made what was there at the beginning.
  const std::vector<Change>& changes() const { return changes_; }
  std::size_t first() const { return first_; }

  int open_at(int directory, const std::string& path, int flags) override;
  ssize_t write(int fd, std::span<const std::byte> bytes) override;
  int ftruncate(int fd, off_t size) override;
  int fsync(int fd) override;
  int fdatasync(int fd) override;
  int rename_at(int directory, const std::string& from, const std::string& to) override;
  int exchange_at(int directory, const std::string& a, const std::string& b) override;
  int mkdir_at(int directory, const std::string& path) override;
  int symlink_at(const std::string& target, int directory, const std::string& path) override;
  int unlink_at(int directory, const std::string& path, int flags) override;

 protected:
  // After each change, before the next one can happen.
  virtual void changed() {}

 private:
  struct Entry {
    Number directory = 0;  // 0: not below the top
    std::string name;
    bool there = false;
  };
  Entry entry_of(int directory, const std::string& path) const;
  Number number_of(int fd) const;  // 0: nothing that is recorded
  Number new_number(int directory, const std::string& path);
  void add_what_is_there(Number directory, const std::filesystem::path& path);
  void record(Change change);
  int flushed(int fd, int result);
  int renamed(Change::Kind kind, int directory, const std::string& from, const std::string& to);

  std::mutex mutex_;  // held during a call and its record, so that records are in the order of the calls
  std::map<std::pair<dev_t, ino_t>, Number> numbers_;
  Number last_ = top;
  std::vector<Change> changes_;
  std::size_t first_ = 0;
};

}  // namespace pmaptrain::testing
