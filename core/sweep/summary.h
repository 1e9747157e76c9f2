// The end of a sweep: summary.json, and what is printed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace pmaptrain::sweep {

struct Summary {
  int exit_status = 0;  // 1 if no trial has a value
  std::string text, json;
  std::optional<Diagnostic> failure;  // why none has one
};

// Writes summary.json into the sweep's folder. `stopped`: by a signal. `seconds`: of this process. `columns`: of the
// terminal that the text is for; 0: none. Throws Error.
Summary write_summary(const std::filesystem::path& sweep, bool stopped, double seconds, int columns = 0);

}  // namespace pmaptrain::sweep
