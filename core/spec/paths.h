// The files and folders that a config names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/spec/changes/loaded.h"

namespace pmaptrain::spec {

// The files and folders that a config names below a key, in the order of its keys.
std::vector<PathAt> paths_below(const Loaded& loaded, std::string_view key);

// Looks for the paths below data.source in other places, in the checked config `config`, and adds a line for each one
// that is found there. With Overrides::data_root, every path that no option has set is taken from below that folder,
// where what is left of the path after its first folders may lie: of /home/a/data/x.npz, the folder's
// home/a/data/x.npz,
// ..., data/x.npz or x.npz, the first that exists, else the last. Without, and with Overrides::is_run, a path that does
// not exist is looked for in this way below `directory` and each folder above it: the run may have moved together with
// its data. Throws Error (usage) where data_root is no folder.
void find_data(Node& config, const Overrides& overrides, const std::string& directory, std::vector<std::string>& facts);

// Puts Overrides::base in place of the path from which the base of `lora` comes. Without, and with Overrides::is_run, a
// path that does not exist is looked for as those of data are. Throws Error (usage) where there is no such path.
void find_base(Node& config, const Overrides& overrides, const std::string& directory, std::vector<std::string>& facts);

}  // namespace pmaptrain::spec
