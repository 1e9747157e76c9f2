// The option that names the file which a command writes.
#pragma once

#include <string>

namespace pmaptrain::app {

// Throws Error (usage), placed at the value of --output, if a file cannot be written there: its folder does not exist,
// or something is there that is no regular file, or that `overwrite` does not allow to be replaced.
void check_output_file(const std::string& output, bool overwrite);

}  // namespace pmaptrain::app
