// Options that name a file which a command writes.
#pragma once

#include <string>

namespace pmaptrain::app {

// Throws Error (usage), placed at the value of `option`, if the folder of this file does not exist.
void check_folder_of(const std::string& option, const std::string& file);

// Throws Error (usage), placed at the value of --output, if a file cannot be written there: its folder does not exist,
// or something is there that is no regular file, or that `overwrite` does not allow to be replaced.
void check_output_file(const std::string& output, bool overwrite);

}  // namespace pmaptrain::app
