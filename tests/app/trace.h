// What a process changes in a folder, call by call, as tests/app/write_trace.cpp records it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/app/process.h"

namespace pmaptrain::tests {

// Runs a command, and appends to the file `trace` what it changes below the folder `below`. It is killed after that
// many calls, if any number is given.
Shell traced(const std::vector<std::string>& command, const std::string& trace, const std::string& below,
             int killed_after = 0);

using Number = unsigned long;  // of a file or directory

struct Record {
  std::string call, name, other, bytes;  // other: the second name, or a link's target
  Number of = 0, made = 0;               // the file or directory; what was made in it
  std::size_t at = 0;                    // where bytes are written, or the size that is left
};

std::vector<Record> read_trace(const std::string& path);

}  // namespace pmaptrain::tests
