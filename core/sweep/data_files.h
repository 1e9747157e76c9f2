// The files of a sweep's data, which must stay the same while trials are compared.
#pragma once

#include <string>
#include <vector>

#include "core/spec/load.h"
#include "core/sweep/store.h"

namespace pmaptrain::sweep {

// The files and folders that configs name below data.source, each with a hash of its contents; sorted by path, each
// once. A file whose size and time of change are those of `known` keeps its hash, unread. Throws Error (data).
std::vector<DataFile> data_files_of(const std::vector<std::string>& paths, const std::vector<DataFile>& known);

// The paths of files that differ between the two.
std::vector<std::string> changed_files(const std::vector<DataFile>& before, const std::vector<DataFile>& now);

}  // namespace pmaptrain::sweep
