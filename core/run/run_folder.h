// The folder of one run: its lock, and how files and checkpoints are written atomically.
//
// A folder that pmaptrain wrote holds the file ".pmaptrain", whose first line says so. The writing process holds an
// exclusive lock on that file; the lock ends with the process. Only such a folder is ever replaced, and only the files
// that pmaptrain writes are removed from it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/files/directory.h"
#include "core/run/find_checkpoint.h"

namespace pmaptrain::run {

struct RunFolderOptions {
  bool overwrite = false;
  // Continue the run in the folder, or begin one if there is none.
  bool resume = false;
  // The checkpoint from which a run continues; none if the run in the folder has no checkpoint and begins anew.
  struct Resumed {
    std::int64_t step = 0;
    std::string best;                 // the folder of the best checkpoint so far; empty: none
    std::uint64_t metrics_bytes = 0;  // the length of metrics.jsonl at the checkpoint
  };
  std::optional<Resumed> resumed = std::nullopt;
  // For the commands that an error message suggests: the command line as typed, without --name, --run-dir, --overwrite
  // and --resume ("pmaptrain run configs/cnn.yaml"), and whether --name or --run-dir was given.
  std::string command = "pmaptrain run CONFIG";
  bool explicit_name = false, explicit_dir = false;
  // Whether this process writes the folder. Of several processes that carry a run, one does.
  bool writes = true;
  // Files that the run reads: a folder that contains one of them is not replaced.
  std::vector<std::filesystem::path> input_files;
};

// Whether a process is writing in the folder. It then holds the folder's lock. False where file systems have no locks.
bool is_being_written(const std::filesystem::path& dir);

class RunFolder {
 public:
  // Throws what claim() would throw now. Locks nothing.
  static void check(const std::filesystem::path& dir, const RunFolderOptions& options);

  // Locks an existing folder that is to be replaced or continued, and changes nothing in it. Creates no folder. Throws
  // Error: usage if the folder exists (with suggested commands) or if --overwrite would replace files that pmaptrain
  // did not write; resource if another process writes there, or if the folder cannot be written.
  static RunFolder claim(const std::filesystem::path& dir, const RunFolderOptions& options);

  // Creates the folder and its parents and locks it, or removes what pmaptrain wrote in it before; then writes
  // config.yaml, and tokenizer.json where the run has a tokenizer. A run that is continued keeps its files, except for
  // summary.json, the lines of metrics.jsonl after the checkpoint, and what a killed process left unfinished; its links
  // lead to its checkpoints again. On failure throws Error and restores the folder: resource if it cannot be written or
  // another process writes there by now; usage if it exists by now.
  void begin(std::string_view config, const std::optional<std::string>& tokenizer = std::nullopt);

  // If false, another process writes the folder: functions that would change or check it do nothing.
  bool writes() const { return options_.writes; }

  const std::filesystem::path& path() const { return path_; }
  const Directory& directory() const { return directory_; }
  // The place of a file directly in the folder. It is valid after the folder was moved.
  FilePlace place(const std::string& name) const { return directory_.place(name); }

  // Throws Error (failed) if the folder's path no longer leads to it. The message says that it was removed, or where it
  // was moved to.
  void check_in_place() const;
  bool is_removed() const;
  // The folder's path, or the path that it was moved to.
  std::filesystem::path present_path() const;

  // Warnings for the user: the file system has no locks, or parts of an old run could not be removed.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Commits checkpoints/step-NNNNNNNN, and makes checkpoints/last a link to it. `fill` writes files into a temporary
  // folder, which is flushed to the disk and then renamed, so that a checkpoint is complete or does not exist. Replaces
  // a checkpoint of the same step. `best`: the folder beside it to which checkpoints/best leads from then on; empty: it
  // stays. Throws Error (failed), and what `fill` throws; the temporary folder is then removed.
  void commit_checkpoint(std::int64_t step, const std::function<void(const Directory&)>& fill,
                         const std::string& best = {}) const;

  // Commits checkpoints/best-NNNNNNNN in the same way, without a link to it.
  void commit_best(std::int64_t step, const std::function<void(const Directory&)>& fill) const;

  // Removes all checkpoints but the `keep` newest and the target of checkpoints/best.
  void prune_checkpoints(std::int64_t keep) const;

  // Flushes a file directly in the folder to the disk, if it exists. Throws Error (failed).
  void flush_file(const std::string& name) const;

  // Makes checkpoints/<name> a link to the folder `checkpoint` beside it, in one rename. Throws Error (failed).
  void link_checkpoint(const std::string& name, const std::string& checkpoint) const;

 private:
  RunFolder(std::filesystem::path path, RunFolderOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  void adopt();
  bool make_folder();
  void open_folder();
  bool take_marker();
  void complete_marker();
  void upgrade_marker() const;
  void replace_old(std::string_view config);
  void continue_old(std::string_view config);
  // A folder in `checkpoints`, and then the links to it.
  struct Link {
    std::string name, to;
  };
  void commit(const std::string& name, const std::function<void(const Directory&)>& fill,
              const std::vector<Link>& links) const;
  void tidy_checkpoints(const RunFolderOptions::Resumed& resumed) const;
  void cut_metrics(std::uint64_t bytes);

  std::filesystem::path path_;
  RunFolderOptions options_;
  Directory directory_;
  Descriptor marker_;      // locked
  bool replaces_ = false;  // the folder has a run
  std::vector<std::string> warnings_;
};

}  // namespace pmaptrain::run
