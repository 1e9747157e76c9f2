#include "core/sweep/folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/run/files/directory.h"
#include "core/run/files/file_system.h"
#include "core/run/files/file_writer.h"

namespace pmaptrain::sweep {
namespace {

namespace fs = std::filesystem;

const std::string marker_name = ".pmaptrain-sweep";
constexpr std::string_view marker_text =
    "pmaptrain sweep folder\n"
    "pmaptrain wrote this folder. While a sweep runs in it, it holds a lock on this file.\n"
    "Without this file, --overwrite leaves the folder alone.\n";
// What a sweep writes, and what SQLite adds.
constexpr const char* written[] = {"sweep.sqlite", "sweep.sqlite-wal", "sweep.sqlite-shm", "sweep.sqlite-journal",
                                   "summary.json", "configs",          "trials",           "ensembles"};

bool is_ours(const fs::path& path) {
  std::error_code error;
  return fs::exists(path / marker_name, error);
}

bool has_nothing(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) && fs::is_empty(path, error);
}

[[noreturn]] void fail_taken(const fs::path& path) {
  fail_resource(
      fmt::format("another sweep runs in '{}'", path.string()),
      fmt::format("wait for it, or give this one a folder of its own: --dir DIR; pmaptrain sweep show {} shows "
                  "how far it is",
                  shell_quoted(path.string())));
}

[[noreturn]] void fail_folder(const fs::path& path, std::string_view done, int error) {
  fail_resource(fmt::format("the sweep's folder '{}' cannot be {}: {}", path.string(), done, run::system_words(error)),
                run::system_help(error));
}

}  // namespace

// The shared lock does not disturb other processes that look.
bool SweepFolder::is_taken(const fs::path& path) {
  const Descriptor marker(
      run::file_system().open_at(AT_FDCWD, (path / marker_name).string(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return marker && run::file_system().flock(marker.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

void SweepFolder::check(const fs::path& path, const FolderOptions& options) {
  if (is_taken(path)) fail_taken(path);
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(path, error));
  if (!there || has_nothing(path)) return;
  if (!fs::is_directory(path, error)) {
    fail_usage(fmt::format("'{}' is no folder", path.string()), "name another one: --dir DIR");
  }
  if (!is_ours(path)) {
    fail_usage(fmt::format("'{}' is there, and pmaptrain sweep did not write it", path.string()),
               "name another one: --dir DIR");
  }
  if (!options.resume && !options.overwrite) {
    fail_usage(fmt::format("there is a sweep in '{}' already", path.string()),
               "--resume goes on with it, --overwrite begins it anew, --dir DIR names another folder");
  }
}

SweepFolder SweepFolder::claim(const fs::path& path, const FolderOptions& options) {
  check(path, options);
  SweepFolder folder;
  folder.path_ = path;
  if (const int error = run::make_directories(path); error != 0) fail_folder(path, "made", error);
  folder.marker_ =
      Descriptor(run::file_system().open_at(AT_FDCWD, (path / marker_name).string(), O_RDWR | O_CREAT | O_CLOEXEC));
  if (!folder.marker_) fail_folder(path, "written", errno);
  if (run::file_system().flock(folder.marker_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) fail_taken(path);
  if (run::write_all(folder.marker_.get(), std::as_bytes(std::span(marker_text))) != marker_text.size()) {
    fail_folder(path, "written", errno);
  }
  if (options.overwrite) {
    const run::Directory directory(
        Descriptor(run::file_system().open_at(AT_FDCWD, path.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path);
    for (const char* const name : written) directory.remove(name);
  }
  for (const char* const name : {"configs", "trials", "ensembles"}) {
    if (const int error = run::make_directories(path / name); error != 0) fail_folder(path, "written", error);
  }
  return folder;
}

void SweepFolder::write(const std::string& name, const std::string& text) const {
  run::write_whole((path_ / name).string(), text);
}

fs::path SweepFolder::write_config(const std::string& trial, const std::string& text) const {
  fs::path file = path_ / "configs" / (trial + ".yaml");
  std::ifstream stream(file, std::ios::binary);
  // It is there where the trial goes on.
  if (stream && std::string(std::istreambuf_iterator<char>(stream), {}) == text) return file;
  run::write_whole(file.string(), text);
  return file;
}

void check_is_sweep(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path / "sweep.sqlite", error)) return;
  fail_usage(fmt::format("'{}' is no folder of a sweep", path.string()),
             fs::exists(path, error) ? "name the folder that pmaptrain sweep run wrote: sweeps/NAME"
                                     : "there is no such folder; pmaptrain sweep run SWEEP.yaml writes sweeps/NAME");
}

}  // namespace pmaptrain::sweep
