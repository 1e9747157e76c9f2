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
#include "core/train/run_folder_errors.h"

namespace pmaptrain::train {
namespace {

namespace fs = std::filesystem;

const std::string marker_name = ".pmaptrain";
constexpr std::string_view marker_line = "pmaptrain run folder\n";
constexpr std::string_view marker_text =
    "pmaptrain run folder\n"
    "pmaptrain wrote this folder. While it does, it holds a lock on this file.\n"
    "Without this file, --overwrite leaves the folder alone.\n";

// What pmaptrain writes, in the order of its removal. config.yaml goes last: it says what the rest is.
constexpr std::array<std::string_view, 5> written = {"summary.json", "metrics.jsonl", "log.txt", "checkpoints",
                                                     "config.yaml"};

// Whether a killed process of ours leaves a file of this name: what temporary_name() makes of `of`.
bool is_temporary_of(const std::string& name, std::string_view of) {
  const std::string prefix = ".tmp-" + std::string(of) + "-";
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         name.find_first_not_of("0123456789", prefix.size()) == std::string::npos;
}

bool is_temporary(const std::string& name) {
  return is_temporary_of(name, marker_name) || std::any_of(written.begin(), written.end(), [&](std::string_view file) {
           return is_temporary_of(name, file);
         });
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

// A folder that exists, before anything is done to it.
struct Found {
  bool there = false;
  Directory directory;  // where it is one that may be opened
  Descriptor marker;    // open where there is one that may be read
  bool ours = false;    // the marker says so
  bool unwritten =
      false;        // what a process leaves that is killed while it begins: nothing but a marker without its text
  int problem = 0;  // why it may not be read or written; 0: it may
};

// The first bytes of the marker, at most as many as a whole one has.
std::string text_of(const Descriptor& marker) {
  std::string text(marker_text.size() + 1, '\0');
  const ssize_t count = ::pread(marker.get(), text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

Found find(const fs::path& dir) {
  Found found;
  struct stat status = {};
  if (::lstat(dir.c_str(), &status) != 0) {
    if (errno == ENOENT) return found;
    fail_run_folder(dir, "made", errno);
  }
  found.there = true;
  Descriptor fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    if (errno != ENOTDIR && errno != ENOENT) found.problem = errno;
    return found;
  }
  found.directory = Directory(std::move(fd), dir);
  const auto open_marker = [&](int how) {
    const int flags = how | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    found.marker = Descriptor(::openat(found.directory.fd(), marker_name.c_str(), flags));
    return static_cast<bool>(found.marker);
  };
  // On some network file systems only a file that is open for writing can be locked.
  if (!open_marker(O_RDWR) && errno != ENOENT && errno != ELOOP && errno != EISDIR) {
    found.problem = errno;
    open_marker(O_RDONLY);
  }
  if (found.problem == 0 && ::faccessat(found.directory.fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) found.problem = errno;
  const std::string text = found.marker ? text_of(found.marker) : "";
  found.ours = text.starts_with(marker_line);
  if (found.ours) return found;
  const std::vector<std::string> names = found.directory.names();
  const bool nothing_else = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_temporary_of(name, marker_name) || (name == marker_name && found.marker);
  });
  found.unwritten = nothing_else && marker_text.starts_with(text);
  return found;
}

// Whether clear() would take `file` away.
bool is_cleared(const fs::path& dir, const fs::path& file) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(dir, error));
  return !inside.empty() && std::find(written.begin(), written.end(), inside.begin()->string()) != written.end();
}

// Throws what the options do not allow.
void judge(const fs::path& dir, const Found& found, const RunFolderOptions& options) {
  if (!found.there) return;
  if (found.marker && lock(found.marker) == Lock::taken) fail_taken(dir);
  const bool replaceable = (found.ours || found.unwritten) && found.problem == 0;
  if (!options.overwrite) {
    fail_exists(dir, options, replaceable,
                found.problem != 0 ? fmt::format("it may not be written ({})", system_words(found.problem))
                                   : "pmaptrain did not write it");
  }
  if (found.problem != 0) fail_run_folder(dir, "replaced", found.problem);
  if (found.directory.fd() < 0) fail_not_a_folder(dir);
  if (!replaceable) fail_not_ours(dir);
  for (const fs::path& file : options.reads) {
    if (is_cleared(dir, file)) fail_would_remove(file);
  }
}

fs::path normal(const fs::path& dir) {
  fs::path path = dir;  // with its "..": a link may stand before them
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // no slash at its end
  return path;
}

// Removes what pmaptrain wrote, but not what a link there leads to. What is being removed has another name, so that
// whoever is interrupted leaves no half of a checkpoint under a checkpoint's name.
void clear(const Directory& directory) {
  for (const std::string& name : directory.names()) {
    if (is_temporary(name)) directory.remove(name);
  }
  for (const std::string_view name : written) {
    const std::string old(name), removed = temporary_name(name);
    if (!directory.has(old)) continue;
    directory.rename(old, removed);
    directory.remove(removed);
  }
}

}  // namespace

void RunFolder::check(const fs::path& dir, const RunFolderOptions& options) {
  const fs::path path = normal(dir);
  judge(path, find(path), options);
}

RunFolder RunFolder::claim(const fs::path& dir, const RunFolderOptions& options) {
  RunFolder folder(normal(dir), options);
  Found found = find(folder.path_);
  judge(folder.path_, found, options);
  folder.directory_ = std::move(found.directory);
  folder.marker_ = std::move(found.marker);
  folder.replaces_ = found.ours;
  if (folder.marker_) folder.lock_marker();
  return folder;
}

void RunFolder::begin() {
  if (directory_.fd() >= 0) check_in_place();
  if (replaces_) {
    clear(directory_);
  } else {
    make();
  }
}

RunFolder RunFolder::create(const fs::path& dir, const RunFolderOptions& options) {
  RunFolder folder = claim(dir, options);
  folder.begin();
  return folder;
}

void RunFolder::make() {
  bool made = false;
  const bool had_marker = static_cast<bool>(marker_);
  if (directory_.fd() < 0) {
    const fs::path above = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
    std::error_code error;
    fs::create_directories(above, error);
    if (error) fail_run_folder(above, "made", error.value());
    // Of two that start at once, one makes the folder or the marker, and the other is told.
    if (::mkdir(path_.c_str(), 0777) != 0) {
      if (errno == EEXIST) fail_appeared();
      fail_run_folder(path_, "made", errno);
    }
    made = true;
  }
  try {
    if (made) {
      directory_ = Directory(Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)), path_);
      if (directory_.fd() < 0) fail_run_folder(path_, "made", errno);
    }
    for (const std::string& name : directory_.names()) {
      if (is_temporary(name)) directory_.remove(name);
    }
    write_marker();
    if (made) {
      const Descriptor above(::openat(directory_.fd(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (above) flush_to_disk(above.get(), path_.parent_path());
    }
  } catch (const Error& error) {
    const bool others = error.status() != ExitStatus::failed;  // another process has the folder now
    if (!others && !had_marker) directory_.remove_quietly(marker_name);
    if (made) ::rmdir(path_.c_str());
    if (others) throw;
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    std::string& message = diagnostics.front().message;
    message = fmt::format("the run folder '{}' cannot be made: {}", path_.string(), message);
    throw Error(ExitStatus::resource, std::move(diagnostics));
  }
}

// A folder that was not there when this one was claimed.
void RunFolder::fail_appeared() const {
  if (options_.overwrite) fail_taken(path_);
  judge(path_, find(path_), options_);
  fail_run_folder(path_, "made", EEXIST);
}

// The marker is there with its whole text, or not at all: a folder whose marker says nothing would be taken for
// somebody else's.
void RunFolder::write_marker() {
  const auto bytes = std::as_bytes(std::span(marker_text));
  if (marker_) {  // without its text, and locked
    if (::pwrite(marker_.get(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      fail_file(path_ / marker_name, "written", errno);
    }
    flush_to_disk(marker_.get(), path_ / marker_name);
    return;
  }
  const std::string temporary = temporary_name(marker_name);
  {
    FileWriter writer(directory_.place(temporary), path_ / marker_name);
    writer.write(bytes);
    writer.close();
  }
  const int fd = directory_.fd();
  // A file system that cannot rename without replacing may still make a second name for a file.
  if (::renameat2(fd, temporary.c_str(), fd, marker_name.c_str(), RENAME_NOREPLACE) != 0) {
    int problem = errno;
    if (problem == EINVAL || problem == ENOSYS) {
      problem = ::linkat(fd, temporary.c_str(), fd, marker_name.c_str(), 0) == 0 ? 0 : errno;
    }
    directory_.remove_quietly(temporary);
    if (problem == EEXIST) fail_taken(path_);
    if (problem != 0) fail_file(path_ / marker_name, "written", problem);
  }
  marker_ = Descriptor(::openat(fd, marker_name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!marker_) fail_file(path_ / marker_name, "opened", errno);
  lock_marker();
  directory_.flush();
}

void RunFolder::lock_marker() {
  switch (lock(marker_)) {
    case Lock::held: break;
    case Lock::taken: fail_taken(path_);
    case Lock::unsupported:
      warnings_.push_back(fmt::format(
          "the file system of '{}' has no locks: nothing keeps a second pmaptrain from writing there", path_.string()));
  }
}

void RunFolder::check_in_place() const {
  const Directory::Whereabouts found = directory_.whereabouts();
  if (!found.in_place) fail_moved(path_, found.now);
}

bool RunFolder::is_removed() const {
  const Directory::Whereabouts found = directory_.whereabouts();
  return !found.in_place && found.now.empty();
}

void RunFolder::write_config(std::string_view text) const { write_whole(place("config.yaml"), text); }

std::string checkpoint_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

void RunFolder::commit_checkpoint(std::int64_t step, const std::function<void(const Directory&)>& fill) const {
  const std::string name = checkpoint_name(step);
  const std::string temporary = ".tmp-" + name, replaced = ".old-" + name;
  const Directory checkpoints = directory_.enter("checkpoints", true);
  checkpoints.remove(temporary);  // of a process that died
  try {
    const Directory unfinished = checkpoints.enter(temporary, true);
    fill(unfinished);
    unfinished.flush();
    if (!checkpoints.has(name)) {
      checkpoints.rename(temporary, name);
    } else if (!checkpoints.exchange(temporary, name)) {
      checkpoints.remove(replaced);
      checkpoints.rename(name, replaced);
      checkpoints.rename(temporary, name);
    }
    checkpoints.flush();
  } catch (...) {
    checkpoints.remove_quietly(temporary);
    throw;
  }
  link_checkpoint("last", step);
  checkpoints.remove_quietly(temporary);
  checkpoints.remove_quietly(replaced);
}

void RunFolder::link_checkpoint(const std::string& name, std::int64_t step) const {
  const Directory checkpoints = directory_.enter("checkpoints", false);
  checkpoints.link(checkpoint_name(step), name);
  checkpoints.flush();
}

namespace {

[[noreturn]] void fail_checkpoint(std::string message, std::string help) {
  throw Error(ExitStatus::usage, Diagnostic{"usage", {}, std::move(message), std::move(help), {}});
}

}  // namespace

fs::path find_checkpoint(const fs::path& run, const std::string& which) {
  const fs::path checkpoints = run / "checkpoints";
  std::error_code error;
  std::int64_t step = 0;
  const auto [end, wrong] = std::from_chars(which.data(), which.data() + which.size(), step);
  const bool is_step = wrong == std::errc() && end == which.data() + which.size() && step >= 0;
  const bool is_word = which == "last" || which == "best";
  const fs::path place = checkpoints / (is_step ? checkpoint_name(step) : which);
  const auto check_readable = [&](const std::error_code& problem) {
    if (!problem || problem == std::errc::no_such_file_or_directory || problem == std::errc::not_a_directory) return;
    fail_data(fmt::format("'{}' cannot be read: {}", checkpoints.string(), problem.message()),
              "check the permissions of the run folder");
  };
  if ((is_step || is_word) && fs::is_directory(place, error)) return checkpoints / place.filename();
  check_readable(error);

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
  check_readable(error);
  std::sort(steps.begin(), steps.end());
  std::vector<std::string> there;
  there.reserve(steps.size() + 2);
  for (const std::int64_t value : steps) there.push_back(std::to_string(value));
  for (const char* const word : {"last", "best"}) {
    if (fs::is_directory(checkpoints / word, error)) there.emplace_back(word);
  }
  if (!fs::is_directory(run, error)) {
    fail_checkpoint(fmt::format("'{}' is not a run folder: there is no such folder", run.string()),
                    "runs are written to runs/<name>");
  }
  fail_checkpoint(fmt::format("the run '{}' has no checkpoint '{}'", run.string(), which),
                  there.empty() ? "it has none: a run writes its first at its end" : "it has " + join(there, ", "));
}

}  // namespace pmaptrain::train
