// Errors about run folders that cannot be used. Each suggests commands that work.
#pragma once

#include <filesystem>
#include <string>

#include "core/run/run_folder.h"

namespace pmaptrain::run {

// "the run folder 'dir' exists", with suggested commands. `replaceable`: whether --overwrite is possible; if not,
// `why_not` is the reason.
[[noreturn]] void fail_exists(const std::filesystem::path& dir, const RunFolderOptions& options, bool replaceable,
                              const std::string& why_not);
// pmaptrain did not write the folder, so --overwrite and --resume are refused.
[[noreturn]] void fail_not_ours(const std::filesystem::path& dir, const RunFolderOptions& options);
[[noreturn]] void fail_not_a_folder(const std::filesystem::path& dir, const RunFolderOptions& options);
[[noreturn]] void fail_would_remove(const std::filesystem::path& file);
// Another process writes in the folder.
[[noreturn]] void fail_taken(const std::filesystem::path& dir);
// A file of the run to be continued is a pipe, a device, a folder or a broken link. Exit status resource.
[[noreturn]] void fail_not_a_file(const std::filesystem::path& dir, const std::string& name);
// "the run folder 'dir' cannot be <done>: <the system's message>"; exit status resource.
[[noreturn]] void fail_run_folder(const std::filesystem::path& dir, std::string_view done, int error);
// The folder's path no longer leads to it. Exit status failed.
[[noreturn]] void fail_moved(const std::filesystem::path& dir, const Directory::Whereabouts& found);

}  // namespace pmaptrain::run
