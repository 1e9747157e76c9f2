// Why a run folder is refused, with the commands that would do.
#pragma once

#include <filesystem>
#include <string>

#include "core/run/run_folder.h"

namespace pmaptrain::train {

// "the run folder 'dir' exists", with ready commands. `replaceable`: whether --overwrite would be obeyed; else
// `why_not` says why it would not.
[[noreturn]] void fail_exists(const std::filesystem::path& dir, const RunFolderOptions& options, bool replaceable,
                              const std::string& why_not);
// --overwrite, or --resume, would not be obeyed.
[[noreturn]] void fail_not_ours(const std::filesystem::path& dir, const RunFolderOptions& options);
[[noreturn]] void fail_not_a_folder(const std::filesystem::path& dir, const RunFolderOptions& options);
[[noreturn]] void fail_would_remove(const std::filesystem::path& file);
// Another process writes there.
[[noreturn]] void fail_taken(const std::filesystem::path& dir);
// A file of the run that is to go on is a pipe, a device, a folder or a link that leads nowhere. Exit status resource.
[[noreturn]] void fail_not_a_file(const std::filesystem::path& dir, const std::string& name);
// "the run folder 'dir' cannot be <done>: <the system's words>"; exit status resource.
[[noreturn]] void fail_run_folder(const std::filesystem::path& dir, std::string_view done, int error);
// The folder is not what its path leads to any more. Exit status failed.
[[noreturn]] void fail_moved(const std::filesystem::path& dir, const Directory::Whereabouts& found);

}  // namespace pmaptrain::train
