#include "core/run/old_run.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "core/base/error.h"
#include "core/run/files/file_system.h"
#include "core/run/records/tensorboard.h"
#include "core/run/run_folder.h"

namespace pmaptrain::run {
namespace {

constexpr std::string_view checkpoints = "checkpoints";
constexpr std::array<std::string_view, 7> written = {checkpoints, tensorboard_folder, "summary.json",  "metrics.jsonl",
                                                     "log.txt",   "threshold.json",   "tokenizer.json"};

bool is_checkpoint(const std::string& name) {
  return name == "last" || name == "best" || name.starts_with(".tmp-") || name.starts_with(".old-") ||
         name.starts_with("damaged-") || checkpoint_step(name);
}

bool rename_to_free(const Directory& directory, const std::string& from, const std::string& to) {
  const int fd = directory.fd();
  return !directory.has(to) && file_system().rename_at(fd, from, to) == 0;
}

// Removes a folder of the run, now called `name`, with the entries for which `is_ours` is true. If `name` is a link,
// removes the link and not its target. If other files are in the folder, they stay, and the folder is renamed back to
// `original`. Returns false if an entry with `is_ours` could not be removed.
bool remove_folder(const Directory& directory, const std::string& name, std::string_view original,
                   bool (*is_ours)(const std::string&)) {
  if (file_system().unlink_at(directory.fd(), name) == 0 || errno == ENOENT) return true;
  try {
    const Directory inside = directory.open_subdirectory(name, false);
    for (const std::string& entry : inside.names()) {
      if (is_ours(entry) && !inside.remove_quietly(entry)) return false;
    }
    if (file_system().unlink_at(directory.fd(), name, AT_REMOVEDIR) == 0) return true;
    if (errno != ENOTEMPTY) return false;
    inside.flush();  // else a part of what was removed could come back after a crash
  } catch (const Error&) {
    return false;  // the folder cannot be opened or flushed
  }
  return rename_to_free(directory, name, std::string(original));
}

}  // namespace

bool is_written_by_a_run(const std::string& name) {
  return std::find(written.begin(), written.end(), name) != written.end();
}

bool is_leftover(const std::string& name) {
  return is_temporary_name(name, "config.yaml") || is_temporary_name(name, ".pmaptrain") ||
         std::any_of(written.begin(), written.end(), [&](std::string_view of) { return is_temporary_name(name, of); });
}

OldRun::OldRun(const Directory& directory) : directory_(directory) {
  try {
    for (const std::string_view name : written) {
      put_aside(std::string(name));
      // Checkpoints without the other files would look like a run, so the new name of their folder reaches the disk
      // first.
      if (name == checkpoints && !renamed_.empty()) directory_.flush();
    }
  } catch (...) {
    restore();
    throw;
  }
}

OldRun::~OldRun() { restore(); }

void OldRun::put_aside(const std::string& name) {
  if (!directory_.has(name)) return;
  const std::string aside = temporary_name(name);
  if (!rename_to_free(directory_, name, aside)) fail_file(directory_.path() / name, "renamed", errno);
  renamed_.emplace_back(name, aside);
}

void OldRun::restore() {
  const int fd = directory_.fd();
  for (const auto& [from, to] : renamed_) file_system().rename_at(fd, to, from);
}

std::vector<std::string> OldRun::remove() {
  std::vector<std::string> left, names;
  try {
    names = directory_.names();
  } catch (const Error&) {
    for (const auto& [from, to] : renamed_) left.push_back(to);
  }
  renamed_.clear();
  for (const std::string& name : names) {
    if (!is_leftover(name)) continue;
    const bool gone = is_temporary_name(name, checkpoints) ? remove_folder(directory_, name, checkpoints, is_checkpoint)
                      : is_temporary_name(name, tensorboard_folder)
                          ? remove_folder(directory_, name, tensorboard_folder, is_event_entry)
                          : directory_.remove_quietly(name);
    if (!gone) left.push_back(name);
  }
  return left;
}

}  // namespace pmaptrain::run
