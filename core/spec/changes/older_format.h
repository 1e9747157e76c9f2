// Configs of run folders that an older pmaptrain wrote.
#pragma once

#include <filesystem>

#include "core/spec/yaml/node.h"

namespace pmaptrain::spec {

// The format that the marker of a folder names; 1 where it names none or there is no marker.
int format_of_run(const std::filesystem::path& folder);

// Adds the keys that a config of a run folder in format 1 lacks and that mean something else in a new config. One that
// was resolved later has them.
void complete_older_config(Node& config);

}  // namespace pmaptrain::spec
