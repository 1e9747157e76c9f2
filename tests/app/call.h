// The program without a process of its own.
#pragma once

#include <string>
#include <vector>

#include "tests/app/process.h"

namespace pmaptrain::tests {

// What these arguments give: exit status and both streams.
Finished call(const std::vector<std::string>& arguments);

}  // namespace pmaptrain::tests
