// How a failure is told: as text on standard error, or as a JSON document on standard output.
#pragma once

#include <string>
#include <vector>

#include "core/base/error.h"

namespace pmaptrain::app {

// {"errors": [{"kind", "file", "line", "column", "message", "help", "notes"}], "exit_status": N}, indented, with its
// end of line. What is not known is null. `validating` puts "valid": false first.
std::string failure_json(const std::vector<Diagnostic>& diagnostics, int exit_status, bool validating = false);

}  // namespace pmaptrain::app
