// The end of a sweep: summary.json, and what is printed.
#pragma once

#include <filesystem>
#include <string>

namespace pmaptrain::sweep {

struct Summary {
  int exit_status = 0;  // 1 if no trial has a value
  std::string text, json;
  std::string failure;  // why none has one
};

// Writes summary.json into the sweep's folder. `stopped`: by a signal. `seconds`: of this process. Throws Error.
Summary write_summary(const std::filesystem::path& sweep, bool stopped, double seconds);

}  // namespace pmaptrain::sweep
