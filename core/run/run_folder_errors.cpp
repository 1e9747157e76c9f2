#include "core/run/run_folder_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::run {
namespace {

namespace fs = std::filesystem;

// Whether "dir-2" beside `dir` is a sensible name: not if `dir` is "." or "/".
bool has_siblings(const fs::path& dir) {
  const fs::path name = dir.filename();
  return !name.empty() && name != "." && name != "..";
}

// The first of dir-2, dir-3, ... that does not exist.
fs::path free_sibling(const fs::path& dir) {
  for (int i = 2;; ++i) {
    fs::path sibling = dir;
    sibling += "-" + std::to_string(i);
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(sibling, ignored))) return sibling;
  }
}

}  // namespace

void fail_exists(const fs::path& dir, const RunFolderOptions& options, bool replaceable, const std::string& why_not) {
  const std::string message = fmt::format("the run folder '{}' exists", dir.string());
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    fail_usage(message + " and is no folder",
               fmt::format("choose another with {}", options.explicit_dir ? "--run-dir" : "--name or --run-dir"));
  }
  std::vector<std::pair<std::string, std::string>> commands;
  // The options that selected this folder, for commands that use it again.
  const std::string same = options.explicit_dir    ? " --run-dir " + shell_quoted(dir.string())
                           : options.explicit_name ? " --name " + shell_quoted(dir.filename().string())
                                                   : "";
  if (replaceable) commands.emplace_back(same + " --resume", "continue it");
  if (replaceable) commands.emplace_back(same + " --overwrite", "replace it");
  if (has_siblings(dir)) {
    const fs::path other = free_sibling(dir);
    commands.emplace_back(options.explicit_dir ? " --run-dir " + shell_quoted(other.string())
                                               : " --name " + shell_quoted(other.filename().string()),
                          "keep it, write another");
  }
  std::size_t width = 0;
  for (const auto& command : commands) width = std::max(width, command.first.size());
  std::string help = !replaceable           ? why_not + "; choose another"
                     : commands.size() == 1 ? "choose another with --run-dir, or"
                                            : "one of";
  if (commands.empty()) help += " with --run-dir";
  for (const auto& [arguments, meaning] : commands) {
    help += fmt::format("\n{}{:<{}}   # {}", options.command, arguments, width, meaning);
  }
  fail_usage(message, std::move(help));
}

void fail_not_ours(const fs::path& dir, const RunFolderOptions& options) {
  fail_usage(fmt::format("'{}' was not written by pmaptrain, so {}", dir.string(),
                         options.resume ? "there is no run to resume" : "--overwrite leaves it alone"),
             "choose another folder with --run-dir, or remove this one yourself");
}

void fail_not_a_folder(const fs::path& dir, const RunFolderOptions& options) {
  fail_usage(fmt::format("'{}' is not a folder, so {}", dir.string(),
                         options.resume ? "there is no run to resume" : "--overwrite leaves it alone"),
             "choose another place with --run-dir");
}

void fail_would_remove(const fs::path& file) {
  fail_usage(fmt::format("--overwrite would remove '{}', which this run reads", file.string()),
             "copy it to another place first, or write to another folder with --name or --run-dir");
}

void fail_taken(const fs::path& dir) {
  fail_resource(fmt::format("another pmaptrain is writing the run folder '{}'", dir.string()),
                "wait until it ends, or write to another folder with --run-dir");
}

void fail_run_folder(const fs::path& dir, std::string_view done, int error) {
  fail_resource(fmt::format("the run folder '{}' cannot be {}: {}", dir.string(), done, system_words(error)),
                "choose another place with --run-dir");
}

void fail_not_a_file(const fs::path& dir, const std::string& name) {
  fail_resource(fmt::format("the run folder '{}' cannot be continued: '{}' is no regular file", dir.string(),
                            (dir / name).string()),
                "remove or rename it; --resume goes on without what it had");
}

void fail_moved(const fs::path& dir, const Directory::Whereabouts& found) {
  std::string message, help;
  if (found.removed) {
    message = fmt::format("the run folder '{}' was removed while the run went on", dir.string());
    help = "nothing was written elsewhere, so this run leaves nothing; run it again, and leave its folder alone";
  } else {
    message = fmt::format("'{}' does not lead to the run folder any more, which is {} now", dir.string(),
                          found.now.empty() ? "out of reach" : "'" + found.now.string() + "'");
    help =
        "the run stopped, with a last checkpoint in the folder where that is now; leave a run's folder in its place "
        "until the run ends";
  }
  throw Error(ExitStatus::failed, Diagnostic{"resource", {}, std::move(message), std::move(help), {}});
}

}  // namespace pmaptrain::run
