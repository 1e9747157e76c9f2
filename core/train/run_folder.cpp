#include "core/train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <span>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace pmaptrain::train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view marker_name = ".pmaptrain";
constexpr std::string_view marker_line = "pmaptrain run folder\n";
constexpr std::string_view marker_text =
    "pmaptrain run folder\n"
    "pmaptrain wrote this folder. While it does, it holds a lock on this file.\n"
    "Without this file, --overwrite leaves the folder alone.\n";

// What pmaptrain writes, in the order of its removal. config.yaml goes last: it says what the rest is.
constexpr std::array<std::string_view, 5> written = {"summary.json", "metrics.jsonl", "log.txt", "checkpoints",
                                                     "config.yaml"};

[[noreturn]] void fail_usage(std::string message, std::string help, std::vector<std::string> notes = {}) {
  throw Error(ExitStatus::usage, Diagnostic{"usage", {}, std::move(message), std::move(help), std::move(notes)});
}

[[noreturn]] void fail_to_make(const fs::path& path, int error) {
  fail_resource(
      fmt::format("the run folder '{}' cannot be made: {}", path.string(), std::generic_category().message(error)),
      "choose another place with --run-dir");
}

[[noreturn]] void fail_taken(const fs::path& dir) {
  fail_resource(fmt::format("another pmaptrain is writing the run folder '{}'", dir.string()),
                "wait until it ends, or write to another folder with --run-dir");
}

// As a shell reads it back.
std::string quoted(const std::string& text) {
  constexpr std::string_view safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+=:,@%";
  if (!text.empty() && text.find_first_not_of(safe) == std::string::npos) return text;
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

// Whether another folder can be named after this one: neither '.' nor '/' can.
bool has_siblings(const fs::path& dir) {
  const fs::path name = dir.filename();
  return !name.empty() && name != "." && name != "..";
}

// dir-2, dir-3, ...: the first that is not there.
fs::path free_sibling(const fs::path& dir) {
  for (int i = 2;; ++i) {
    fs::path sibling = dir;
    sibling += "-" + std::to_string(i);
    std::error_code ignored;
    if (!fs::exists(fs::symlink_status(sibling, ignored))) return sibling;
  }
}

// `replaceable`: whether --overwrite would be obeyed.
[[noreturn]] void fail_exists(const fs::path& dir, const RunFolderOptions& options, bool replaceable) {
  const std::string message = fmt::format("the run folder '{}' exists", dir.string());
  std::error_code ignored;
  if (!fs::is_directory(dir, ignored)) {
    fail_usage(message + " and is no folder",
               fmt::format("choose another with {}", options.explicit_dir ? "--run-dir" : "--name or --run-dir"));
  }
  std::vector<std::pair<std::string, std::string>> commands;
  // How this folder was chosen, to be said again where it is to be used again.
  const std::string same = options.explicit_dir    ? " --run-dir " + quoted(dir.string())
                           : options.explicit_name ? " --name " + quoted(dir.filename().string())
                                                   : "";
  if (options.resume_available && replaceable) commands.emplace_back(same + " --resume", "continue it");
  if (replaceable) commands.emplace_back(same + " --overwrite", "replace it");
  if (has_siblings(dir)) {
    const fs::path other = free_sibling(dir);
    commands.emplace_back(
        options.explicit_dir ? " --run-dir " + quoted(other.string()) : " --name " + quoted(other.filename().string()),
        "keep it, write another");
  }
  std::size_t width = 0;
  for (const auto& command : commands) width = std::max(width, command.first.size());
  std::string help = !replaceable           ? "pmaptrain did not write it; choose another"
                     : commands.size() == 1 ? "choose another with --run-dir, or"
                                            : "one of";
  if (commands.empty()) help += " with --run-dir";
  for (const auto& [arguments, meaning] : commands) {
    help += fmt::format("\n{}{:<{}}   # {}", options.command, arguments, width, meaning);
  }
  fail_usage(message, std::move(help));
}

// The marker, opened, when it is one (else errno says why, or is 0); nothing is created.
Descriptor open_marker(const fs::path& dir) {
  errno = 0;
  Descriptor file(::open((dir / marker_name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return {};
  std::array<char, marker_line.size()> line{};
  const ssize_t count = ::pread(file.get(), line.data(), line.size(), 0);
  const bool ours =
      count == static_cast<ssize_t>(line.size()) && std::string_view(line.data(), line.size()) == marker_line;
  if (!ours) file.reset();
  return file;
}

enum class Lock : std::uint8_t { held, taken, unsupported };

Lock lock(const Descriptor& file) {
  while (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Lock::taken;
    return Lock::unsupported;
  }
  return Lock::held;
}

bool is_empty_folder(const fs::path& dir) {
  std::error_code ignored;
  return fs::is_directory(dir, ignored) && fs::is_empty(dir, ignored);
}

// Whether clear() would take `file` away.
bool is_cleared(const fs::path& dir, const fs::path& file) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(dir, error));
  return !inside.empty() && std::find(written.begin(), written.end(), inside.begin()->string()) != written.end();
}

// Throws what the options do not allow; else the marker of a folder to be replaced, or none where there is no folder
// or an empty one.
Descriptor judge(const fs::path& dir, const RunFolderOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(dir, error);
  if (status.type() == fs::file_type::not_found) return {};
  if (status.type() == fs::file_type::none) fail_to_make(dir, error.value());
  Descriptor marker = open_marker(dir);
  const int marker_error = errno;
  if (marker && lock(marker) == Lock::taken) fail_taken(dir);
  if (!options.overwrite) fail_exists(dir, options, static_cast<bool>(marker) || is_empty_folder(dir));
  if (!fs::is_directory(dir, error)) {
    fail_usage(fmt::format("'{}' is not a folder, so --overwrite leaves it alone", dir.string()),
               "choose another place with --run-dir");
  }
  if (!marker && (marker_error == EACCES || marker_error == EROFS)) fail_to_make(dir, marker_error);
  if (!marker && !is_empty_folder(dir)) {
    fail_usage(fmt::format("'{}' was not written by pmaptrain, so --overwrite leaves it alone", dir.string()),
               "choose another folder with --run-dir, or remove this one yourself");
  }
  for (const fs::path& file : options.reads) {
    if (!is_cleared(dir, file)) continue;
    fail_usage(fmt::format("--overwrite would remove '{}', which this run reads", file.string()),
               "copy it to another place first, or write to another folder with --name or --run-dir");
  }
  return marker;
}

fs::path normal(const fs::path& dir) {
  fs::path path = dir;  // with its "..": a link may stand before them
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // no slash at its end
  return path;
}

// Removes what pmaptrain wrote, but not what a link there leads to.
void clear(const fs::path& dir) {
  for (const std::string_view name : written) {
    std::error_code error;
    fs::remove_all(dir / name, error);
    if (error) fail_file(dir / name, "removed", error.value());
  }
}

void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

void move_to(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_file(to, "written", errno);
}

// Exchanges two folders in one step, so that a crash leaves one or the other; false where a file system cannot.
bool exchange(const fs::path& a, const fs::path& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

void flush_folder(const fs::path& dir) {
  std::error_code error;
  fs::recursive_directory_iterator entries(dir, error);
  if (error) fail_file(dir, "read", error.value());
  for (const fs::directory_entry& entry : entries) {
    if (entry.is_regular_file() || entry.is_directory()) flush_to_disk(entry.path());
  }
  flush_to_disk(dir);
}

}  // namespace

void RunFolder::check(const fs::path& dir, const RunFolderOptions& options) { judge(normal(dir), options); }

RunFolder RunFolder::create(const fs::path& dir, const RunFolderOptions& options) {
  const fs::path path = normal(dir);
  Descriptor marker = judge(path, options);
  const bool replaces = static_cast<bool>(marker);
  if (!replaces) {
    std::error_code error;
    if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
    if (error) fail_to_make(path.parent_path(), error.value());
    // Of two that start at once, one makes the folder or the marker, and the other is told.
    const bool made = ::mkdir(path.c_str(), 0777) == 0;
    if (!made) {
      if (errno != EEXIST) fail_to_make(path, errno);
      if (!options.overwrite) fail_exists(path, options, true);
    }
    const fs::path file = path / marker_name;
    marker = Descriptor(::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!marker && errno == EEXIST) fail_taken(path);
    if (!marker || !write_all(marker.get(), std::as_bytes(std::span(marker_text)))) {
      const int problem = errno;
      // Without its marker, a folder that was begun would never be taken for ours again.
      if (marker) ::unlink(file.c_str());
      if (made) ::rmdir(path.c_str());
      fail_to_make(file, problem);
    }
  }
  std::vector<std::string> warnings;
  switch (lock(marker)) {
    case Lock::held: break;
    case Lock::taken: fail_taken(path);
    case Lock::unsupported:
      warnings.push_back(fmt::format(
          "the file system of '{}' has no locks: nothing keeps a second pmaptrain from writing there", path.string()));
  }
  if (replaces) clear(path);
  return {path, std::move(marker), std::move(warnings)};
}

void RunFolder::write_config(std::string_view text) const { write_whole(config(), text); }

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

fs::path RunFolder::commit_checkpoint(std::int64_t step, const std::function<void(const fs::path&)>& fill) const {
  const fs::path checkpoints = path_ / "checkpoints";
  const std::string name = checkpoint_name(step);
  const fs::path temporary = checkpoints / (".tmp-" + name), replaced = checkpoints / (".old-" + name),
                 final_place = checkpoints / name;
  std::error_code error;
  fs::create_directories(checkpoints, error);
  if (error) fail_file(checkpoints, "made", error.value());
  remove_quietly(temporary);  // of a process that died
  remove_quietly(replaced);
  if (::mkdir(temporary.c_str(), 0777) != 0) fail_file(temporary, "made", errno);
  try {
    fill(temporary);
    flush_folder(temporary);
    if (!fs::exists(final_place, error)) {
      move_to(temporary, final_place);
    } else if (!exchange(temporary, final_place)) {
      move_to(final_place, replaced);
      move_to(temporary, final_place);
    }
    flush_to_disk(checkpoints);
  } catch (...) {
    remove_quietly(temporary);
    throw;
  }
  remove_quietly(temporary);
  remove_quietly(replaced);
  link_checkpoint("last", step);
  return checkpoints / name;
}

void RunFolder::link_checkpoint(const std::string& name, std::int64_t step) const {
  const fs::path checkpoints = path_ / "checkpoints", link = checkpoints / name,
                 temporary = checkpoints / (".tmp-" + name);
  remove_quietly(temporary);
  if (::symlink(checkpoint_name(step).c_str(), temporary.c_str()) != 0) fail_file(link, "written", errno);
  move_to(temporary, link);
  flush_to_disk(checkpoints);
}

fs::path find_checkpoint(const fs::path& run, const std::string& which) {
  const fs::path checkpoints = run / "checkpoints";
  std::error_code error;
  std::int64_t step = 0;
  const auto [end, problem] = std::from_chars(which.data(), which.data() + which.size(), step);
  const bool is_step = problem == std::errc() && end == which.data() + which.size() && step >= 0;
  const bool is_word = which == "last" || which == "best";
  const fs::path place = checkpoints / (is_step ? checkpoint_name(step) : which);
  if ((is_step || is_word) && fs::is_directory(place, error)) return checkpoints / place.filename();

  std::vector<std::int64_t> steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view prefix = "step-";
    if (!name.starts_with(prefix)) continue;
    std::int64_t value = 0;
    if (std::from_chars(name.data() + prefix.size(), name.data() + name.size(), value).ec == std::errc()) {
      steps.push_back(value);
    }
  }
  std::sort(steps.begin(), steps.end());
  std::vector<std::string> there;
  there.reserve(steps.size() + 2);
  for (const std::int64_t value : steps) there.push_back(std::to_string(value));
  for (const char* const word : {"last", "best"}) {
    if (fs::is_directory(checkpoints / word, error)) there.emplace_back(word);
  }
  if (!fs::is_directory(run, error)) {
    fail_usage(fmt::format("'{}' is not a run folder: there is no such folder", run.string()),
               "runs are written to runs/<name>");
  }
  fail_usage(fmt::format("the run '{}' has no checkpoint '{}'", run.string(), which),
             there.empty() ? "it has none: a run writes its first at its end" : "it has " + join(there, ", "));
}

}  // namespace pmaptrain::train
