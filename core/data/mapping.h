// A file in memory as the system reads it, page by page, when its bytes are first used.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace pmaptrain::data {

struct MappedRange;

// A file that becomes shorter while it is mapped, or that its disk cannot read, would end the process by SIGBUS at the
// first byte that is not there. The first mapping installs a handler of that signal: such bytes then read as zeros, in
// whatever thread, and the mapping knows. Faults elsewhere go to the handler before it, by default the system's.
class Mapping {
 public:
  // Maps the `size` > 0 bytes of the open file `descriptor`, which becomes the mapping's own. Throws
  // std::system_error.
  Mapping(int descriptor, std::size_t size, std::string path);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<const std::byte> view() const { return {start_, size_}; }

  // Throws Error (data) that names the file when bytes were missing when they were read, or are now. To be asked after
  // reading, before what was read is used. Allocates nothing when all is well; costs a system call.
  void check_intact() const;

 private:
  int descriptor_;
  std::size_t size_;
  std::string path_;
  const std::byte* start_ = nullptr;
  MappedRange* range_ = nullptr;
};

}  // namespace pmaptrain::data
