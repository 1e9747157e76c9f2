// A file in memory as the system reads it, page by page, when its bytes are first used.
#pragma once

#include <cstddef>
#include <ctime>
#include <span>
#include <string>

namespace pmaptrain::data {

struct MappedRange;

// A file that becomes shorter while it is mapped, or that its disk cannot read, would end the process by SIGBUS at the
// first byte that is not there. The first mapping installs a handler of that signal: such bytes then read as zeros, in
// whatever thread, and the mapping knows. Faults elsewhere go to the handler before it, by default the system's.
class Mapping {
 public:
  // Maps the `size` > 0 bytes of the open file `descriptor`, which becomes the mapping's own; `modified` is the file's
  // time of modification. Throws std::system_error.
  Mapping(int descriptor, std::size_t size, timespec modified, std::string path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> view() const { return {start_, size_}; }

  // Throws Error (data) that names the file when bytes were missing when they were read, or are now. To be asked after
  // reading, before what was read is used. Allocates nothing when all is well; costs a system call.
  void check_intact() const;

  // The same, and when the file's size or time of modification is not what it was when it was opened: somebody wrote
  // into it. It cannot see a writer that restores the time, nor one through a mapping until the system updates it.
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
