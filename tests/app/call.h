// The program without a process of its own.
#pragma once

#include <string>
#include <vector>

#include "tests/app/process.h"

namespace pmaptrain::tests {

// What these arguments give: exit status and both streams.
Finished call(const std::vector<std::string>& arguments);

// The same of a run, whose display writes to standard error itself: that comes first in `err`.
Finished call_with_display(const std::vector<std::string>& arguments);

}  // namespace pmaptrain::tests
