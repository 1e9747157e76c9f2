// Memory-mapped files.
#pragma once

#include <cstddef>
#include <ctime>
#include <span>
#include <string>

namespace pmaptrain::data {

struct MappedRange;

// If a mapped file is truncated or its disk fails, an access to the missing bytes raises SIGBUS, which ends the
// process. The first mapping therefore installs a signal handler: missing bytes read as zeros in any thread, and the
// mapping is marked as broken. Faults at other addresses go to the previous handler, by default the system's.
class Mapping {
 public:
  // Maps the `size` > 0 bytes of the open file `descriptor` and takes ownership of it. `modified` is the modification
  // time of the file. Throws std::system_error.
  Mapping(int descriptor, std::size_t size, timespec modified, std::string path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> view() const { return {start_, size_}; }

  // Throws Error (data), which names the file, if bytes were or are missing. Call it after reading and before using the
  // data. Costs one system call and, without an error, allocates nothing.
  void check_intact() const;

  // Like check_intact(), and throws if the size or the modification time of the file has changed since it was opened.
  // It cannot detect a writer that restores the time, or writes through a mapping before the system updates the time.
  void check_unchanged() const;

 private:
  int descriptor_;
  std::size_t size_;
  timespec modified_;
  std::string path_;
  const std::byte* start_ = nullptr;
  MappedRange* range_ = nullptr;
};

}  // namespace pmaptrain::data
