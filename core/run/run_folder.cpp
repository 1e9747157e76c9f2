#include "core/run/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <functional>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"
#include "core/run/files/append_file.h"
#include "core/run/files/file_system.h"
#include "core/run/old_run.h"
#include "core/run/run_folder_errors.h"
#include "core/spec/run_format.h"

namespace pmaptrain::run {
namespace {

namespace fs = std::filesystem;

const std::string marker_name(spec::run_marker);
constexpr std::string_view marker_line = spec::run_marker_line;
// Its last line names the format. That of format 1 lacks the line.
const std::string marker_text = std::string(marker_line) +
                                "pmaptrain wrote this folder. While it does, it holds a lock on this file.\n"
                                "Without this file, --overwrite leaves the folder alone.\n" +
                                std::string(spec::run_format_line) + std::to_string(spec::run_format) + "\n";

enum class Lock : std::uint8_t { held, taken, unsupported };

Lock lock(const Descriptor& file, int how) {
  while (file_system().flock(file.get(), how | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) return Lock::taken;
    return Lock::unsupported;
  }
  return Lock::held;
}

// Whether another process writes in the folder. The shared lock does not disturb other processes that check.
bool is_taken(const Descriptor& marker) {
  const Lock found = lock(marker, LOCK_SH);
  if (found == Lock::held) file_system().flock(marker.get(), LOCK_UN);
  return found == Lock::taken;
}

// Takes the lock for writing. A process that only checks may hold the lock for a moment.
Lock lock_for_writing(const Descriptor& marker) {
  constexpr int tries = 20;
  constexpr std::chrono::milliseconds pause{5};
  for (int i = 1; i < tries; ++i) {
    if (const Lock found = lock(marker, LOCK_EX); found != Lock::taken) return found;
    std::this_thread::sleep_for(pause);
  }
  return lock(marker, LOCK_EX);
}

// Whether the marker still has its name: a process that creates a folder and fails removes the marker again.
bool has_its_name(const Descriptor& marker, const Directory& directory) {
  struct stat open = {}, named = {};
  return ::fstat(marker.get(), &open) == 0 &&
         ::fstatat(directory.fd(), marker_name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

// An existing folder, before anything is done to it.
struct Found {
  bool there = false;
  Directory directory;  // open if the folder may be opened
  Descriptor marker;    // open if there is a marker that may be read
  bool ours = false;    // the marker says that pmaptrain wrote the folder
  // Whether the folder has only an incomplete marker: a process was killed while it began a run.
  bool unwritten = false;
  int problem = 0;  // the error number if it may not be read or written, else 0
};

// The first bytes of the marker, at most as many as a complete marker has.
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
  Descriptor fd(file_system().open_at(AT_FDCWD, dir.string(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) {
    if (errno != ENOTDIR && errno != ENOENT) found.problem = errno;
    return found;
  }
  found.directory = Directory(std::move(fd), dir);
  // The names are listed before the marker is read. A process that begins a run here meanwhile completes its marker
  // before it writes anything else, so entries that are listed without a complete marker belong to no run.
  const std::vector<std::string> names = found.directory.names();
  const auto open_marker = [&](int how) {
    const int flags = how | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    found.marker = Descriptor(file_system().open_at(found.directory.fd(), marker_name, flags));
    return static_cast<bool>(found.marker);
  };
  bool removed = false;  // or never existed
  // On some network file systems only a file that is open for writing can be locked.
  if (!open_marker(O_RDWR)) {
    removed = errno == ENOENT;
    if (!removed && errno != ELOOP && errno != EISDIR) {
      found.problem = errno;
      open_marker(O_RDONLY);
    }
  }
  if (found.problem == 0 && ::faccessat(found.directory.fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) found.problem = errno;
  const std::string text = found.marker ? text_of(found.marker) : "";
  found.ours = text.starts_with(marker_line);
  if (found.ours) return found;
  const bool nothing_else = std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return is_leftover(name) || (name == marker_name && (found.marker || removed));
  });
  found.unwritten = nothing_else && marker_text.starts_with(text);
  return found;
}

// Whether replacing the run in the folder would remove `file`.
bool is_replaced(const fs::path& dir, const fs::path& file) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(dir, error));
  if (inside.empty()) return false;
  const std::string first = inside.begin()->string();
  return first == "config.yaml" || is_written_by_a_run(first);
}

// Throws Error if a file to which a continued run appends is not a regular file: opening a pipe, for example, would
// wait for a reader.
void check_files(const fs::path& dir, const Directory& directory) {
  for (const std::string name : {"metrics.jsonl", "log.txt"}) {
    struct stat status = {};
    const bool there = ::fstatat(directory.fd(), name.c_str(), &status, 0) == 0 || directory.has(name);
    if (there && !S_ISREG(status.st_mode)) fail_not_a_file(dir, name);
  }
}

// Throws Error if the options do not allow the run to use the folder.
void judge(const fs::path& dir, const Found& found, const RunFolderOptions& options) {
  if (!found.there) return;
  if (found.marker && is_taken(found.marker)) fail_taken(dir);
  const bool replaceable = (found.ours || found.unwritten) && found.problem == 0;
  if (!options.overwrite && !options.resume) {
    fail_exists(dir, options, replaceable,
                found.problem != 0 ? fmt::format("it may not be written ({})", system_words(found.problem))
                                   : "pmaptrain did not write it");
  }
  if (found.problem != 0) fail_run_folder(dir, options.resume ? "continued" : "replaced", found.problem);
  if (found.directory.fd() < 0) fail_not_a_folder(dir, options);
  if (!replaceable) fail_not_ours(dir, options);
  if (options.resumed) return check_files(dir, found.directory);
  for (const fs::path& file : options.input_files) {
    if (is_replaced(dir, file)) fail_would_remove(file);
  }
}

fs::path normal(const fs::path& dir) {
  fs::path path = dir;  // keeps "..", which may follow a link
  while (!path.has_filename() && path.has_relative_path()) path = path.parent_path();  // removes a slash at the end
  return path;
}

// Throws `error` again as an error about the run folder. Its exit status is resource instead of failed, because nothing
// was changed in the folder yet.
[[noreturn]] void throw_of(const fs::path& dir, std::string_view done, const Error& error) {
  if (error.status() != ExitStatus::failed) throw error;
  std::vector<Diagnostic> diagnostics = error.diagnostics();
  std::string& message = diagnostics.front().message;
  message = fmt::format("the run folder '{}' cannot be {}: {}", dir.string(), done, message);
  throw Error(ExitStatus::resource, std::move(diagnostics));
}

}  // namespace

bool is_being_written(const fs::path& dir) {
  const Found found = find(normal(dir));
  return found.marker && is_taken(found.marker);
}

void RunFolder::check(const fs::path& dir, const RunFolderOptions& options) {
  if (!options.writes) return;
  const fs::path path = normal(dir);
  try {
    judge(path, find(path), options);
  } catch (const Error& error) {
    throw_of(path, "read", error);
  }
}

RunFolder RunFolder::claim(const fs::path& dir, const RunFolderOptions& options) {
  RunFolder folder(normal(dir), options);
  if (!options.writes) return folder;
  try {
    folder.adopt();
  } catch (const Error& error) {
    throw_of(folder.path_, "claimed", error);
  }
  return folder;
}

// Opens the folder if it exists, and locks its marker if it has one.
void RunFolder::adopt() {
  Found found = find(path_);
  judge(path_, found, options_);
  directory_ = std::move(found.directory);
  replaces_ = found.ours;
  if (found.marker) take_marker();
}

void RunFolder::begin(std::string_view config, const std::optional<std::string>& tokenizer) {
  if (!options_.writes) return;
  bool made_folder = false, made_marker = false;
  try {
    if (directory_.fd() >= 0) check_in_place();
    if (directory_.fd() < 0) made_folder = make_folder();
    if (made_folder) open_folder();
    if (!marker_) made_marker = take_marker();
    complete_marker();
    if (options_.resumed) {
      continue_old(config);
    } else {
      replace_old(config);
    }
    if (tokenizer) write_whole(place(std::string(spec::kept_tokenizer)), *tokenizer);
    upgrade_marker();
  } catch (const Error& error) {
    if (made_marker) file_system().unlink_at(directory_.fd(), marker_name);  // while this holds its lock
    marker_.reset();
    if (made_folder) file_system().unlink_at(AT_FDCWD, path_.string(), AT_REMOVEDIR);
    throw_of(path_, options_.resumed ? "continued" : replaces_ ? "replaced" : "made", error);
  }
}

// Returns whether this process created the folder. A folder that another process created meanwhile counts as found.
bool RunFolder::make_folder() {
  const fs::path above = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
  if (const int error = make_directories(above); error != 0) fail_run_folder(above, "made", error);
  if (file_system().mkdir_at(AT_FDCWD, path_.string()) == 0) return true;
  if (errno != EEXIST) fail_run_folder(path_, "made", errno);
  adopt();
  if (directory_.fd() < 0) fail_run_folder(path_, "made", EEXIST);
  return false;
}

// Opens the folder that this process created, and flushes the folder's own entry to the disk.
void RunFolder::open_folder() {
  constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  directory_ = Directory(Descriptor(file_system().open_at(AT_FDCWD, path_.string(), flags)), path_);
  if (directory_.fd() < 0) fail_file(path_, "opened", errno);
  const Descriptor above(file_system().open_at(directory_.fd(), "..", flags));
  if (above) flush_to_disk(above.get(), path_.parent_path());
}

// Opens the marker, or creates an empty one, and locks it. If several processes do so at once, one gets the lock.
// Returns whether this process created the marker.
bool RunFolder::take_marker() {
  constexpr int tries = 100;  // a process that fails removes its marker
  constexpr int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  for (int i = 0; i < tries; ++i) {
    Descriptor marker(file_system().open_at(directory_.fd(), marker_name, flags | O_CREAT | O_EXCL));
    const bool made = static_cast<bool>(marker);
    if (!made && errno == EEXIST) marker = Descriptor(file_system().open_at(directory_.fd(), marker_name, flags));
    if (!marker && errno == ENOENT) continue;
    if (!marker) fail_file(path_ / marker_name, "written", errno);
    const Lock found = lock_for_writing(marker);
    if (found == Lock::taken) fail_taken(path_);
    if (!has_its_name(marker, directory_)) continue;
    if (found == Lock::unsupported) {
      warnings_.push_back(fmt::format(
          "the file system of '{}' has no locks: nothing keeps a second pmaptrain from writing there", path_.string()));
    }
    marker_ = std::move(marker);
    const bool ours = text_of(marker_).starts_with(marker_line);
    if (ours && !options_.overwrite && !options_.resume)
      fail_exists(path_, options_, true, "");  // another run began and ended meanwhile
    replaces_ = ours;
    return made;
  }
  fail_taken(path_);
}

void RunFolder::complete_marker() {
  if (replaces_) return;
  const auto bytes = std::as_bytes(std::span(marker_text));
  if (write_all(marker_.get(), bytes) < bytes.size()) fail_file(path_ / marker_name, "written", errno);
  flush_to_disk(marker_.get(), path_ / marker_name);
}

// Names the format in the marker of a folder that had an older one, when config.yaml has all keys. Until then, or if it
// cannot be written, these keys have their values in either format.
void RunFolder::upgrade_marker() const {
  if (!replaces_ || text_of(marker_) == marker_text) return;
  write_all(marker_.get(), std::as_bytes(std::span(marker_text)));
}

// Replaces the old config.yaml last: until then, everything can be undone.
void RunFolder::replace_old(std::string_view config) {
  const std::array parts{std::as_bytes(std::span(config))};
  Replacement new_config(place("config.yaml"), parts);
  OldRun old(directory_);
  directory_.flush();
  new_config.take_place();
  for (const std::string& left : old.remove()) {
    warnings_.push_back(fmt::format("'{}' of an old run could not be removed", (path_ / left).string()));
  }
}

void RunFolder::continue_old(std::string_view config) {
  for (const std::string& name : directory_.names()) {
    if (is_leftover(name)) directory_.remove_quietly(name);
  }
  tidy_checkpoints(*options_.resumed);
  cut_metrics(options_.resumed->metrics_bytes);
  write_whole(place("config.yaml"), config);
  directory_.remove("summary.json");  // of the process that stopped
  directory_.flush();
}

// A process may have been killed between the commit of a checkpoint, its links, and the removal of others.
void RunFolder::tidy_checkpoints(const RunFolderOptions::Resumed& resumed) const {
  const Directory checkpoints = directory_.open_subdirectory("checkpoints", false);
  for (const std::string& name : checkpoints.names()) {
    if (name.starts_with(".tmp-") || name.starts_with(".old-")) checkpoints.remove_quietly(name);
  }
  // Newer checkpoints were skipped because they could not be read completely. They are kept under another name until
  // the run writes these steps again, since they may be readable another time.
  for (const std::string& name : checkpoints.names()) {
    if (checkpoint_step(name).value_or(0) <= resumed.step) continue;
    checkpoints.remove_quietly("damaged-" + name);
    checkpoints.rename(name, "damaged-" + name);
  }
  const auto lead = [&](const std::string& link, const std::string& name) {
    if (checkpoints.target(link) != name && checkpoints.has(name)) link_checkpoint(link, name);
  };
  lead("last", checkpoint_name(resumed.step));
  const std::string best = checkpoints.target("best");
  if (!resumed.best.empty()) {
    lead("best", resumed.best);
  } else if (is_best_name(best) || checkpoint_step(best).value_or(0) > resumed.step) {
    checkpoints.remove("best");  // it was the best of steps after the checkpoint, which the run repeats
  }
  for (const std::string& name : checkpoints.names()) {
    if (is_best_name(name) && name != checkpoints.target("best")) checkpoints.remove_quietly(name);
  }
}

void RunFolder::cut_metrics(std::uint64_t bytes) {
  const fs::path shown = path_ / "metrics.jsonl";
  const Descriptor file(
      file_system().open_at(directory_.fd(), "metrics.jsonl", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW));
  if (!file) fail_file(shown, "written", errno);
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) fail_file(shown, "read", errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size < bytes) {
    warnings_.push_back(
        fmt::format("'{}' has {} bytes, but had {} at the checkpoint: lines are missing", shown.string(), size, bytes));
  }
  // A file that is shorter than recorded may end with half a line, to which the next line would be appended.
  const std::uint64_t kept = whole_lines(file.get(), std::min(size, bytes), shown);
  if (kept < size && file_system().ftruncate(file.get(), static_cast<off_t>(kept)) != 0) fail_file(shown, "cut", errno);
}

void RunFolder::flush_file(const std::string& name) const {
  if (!options_.writes) return;
  const Descriptor file(file_system().open_at(directory_.fd(), name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file) flush_to_disk(file.get(), path_ / name);
}

void RunFolder::check_in_place() const {
  if (!options_.writes) return;
  const Directory::Whereabouts found = directory_.whereabouts();
  if (!found.in_place) fail_moved(path_, found);
}

fs::path RunFolder::present_path() const {
  if (!options_.writes) return path_;
  const Directory::Whereabouts found = directory_.whereabouts();
  return found.now.empty() ? path_ : found.now;
}

bool RunFolder::is_removed() const { return options_.writes && directory_.whereabouts().removed; }

void RunFolder::commit_checkpoint(std::int64_t step, const std::function<void(const Directory&)>& fill,
                                  const std::string& best) const {
  const std::string name = checkpoint_name(step);
  std::vector<Link> links{{"last", name}};
  if (!best.empty()) links.push_back({"best", best});
  commit(name, fill, links);
}

void RunFolder::commit_best(std::int64_t step, const std::function<void(const Directory&)>& fill) const {
  commit(best_name(step), fill, {});
}

void RunFolder::commit(const std::string& name, const std::function<void(const Directory&)>& fill,
                       const std::vector<Link>& links) const {
  if (!options_.writes) return;
  const std::string temporary = ".tmp-" + name, replaced = ".old-" + name;
  const Directory checkpoints = directory_.open_subdirectory("checkpoints", true);
  checkpoints.remove(temporary);  // of a process that died
  try {
    const Directory unfinished = checkpoints.make_unfinished(temporary);
    fill(unfinished);
    unfinished.flush();
    directory_.flush();  // the files that a checkpoint's state refers to are on the disk before it
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
  // A link is on the disk after what it leads to.
  for (const Link& link : links) checkpoints.link(link.to, link.name);
  if (!links.empty()) checkpoints.flush();
  for (const std::string& old : {temporary, replaced, "damaged-" + name}) checkpoints.remove_quietly(old);
}

void RunFolder::link_checkpoint(const std::string& name, const std::string& checkpoint) const {
  if (!options_.writes) return;
  const Directory checkpoints = directory_.open_subdirectory("checkpoints", false);
  checkpoints.link(checkpoint, name);
  checkpoints.flush();
}

void RunFolder::prune_checkpoints(std::int64_t keep) const {
  if (!options_.writes) return;
  const Directory checkpoints = directory_.open_subdirectory("checkpoints", false);
  const std::string best = checkpoints.target("best");
  const auto remove = [&](const std::string& name) {  // never leaves half a checkpoint under its name
    if (name == best) return;
    const std::string aside = ".old-" + name;
    if (checkpoints.remove_quietly(aside)) checkpoints.rename(name, aside);
    checkpoints.remove_quietly(aside);
  };
  std::vector<std::int64_t> steps;
  for (const std::string& name : checkpoints.names()) {
    if (const auto found = checkpoint_step(name)) steps.push_back(*found);
    if (is_best_name(name)) remove(name);
  }
  std::sort(steps.begin(), steps.end());
  for (std::int64_t i = 0; i < std::ssize(steps) - keep; ++i) {
    remove(checkpoint_name(steps[static_cast<std::size_t>(i)]));
  }
}

}  // namespace pmaptrain::run
