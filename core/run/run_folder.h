// The folder of one run: its lock, and how files and checkpoints are written atomically.
//
// A folder that pmaptrain wrote holds the file ".pmaptrain", whose first line says so. Its writer holds an exclusive
// lock on that file for as long as it lives; the lock goes with the process, however that ends. Only such a folder is
// ever replaced, and of it only what pmaptrain writes: other files stay.
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

namespace pmaptrain::train {

struct RunFolderOptions {
  bool overwrite = false;
  // Continue the run that is there, or begin one where there is none.
  bool resume = false;
  // The checkpoint that a run continues from; none where the run that is there has none and begins anew.
  struct Resumed {
    std::int64_t step = 0;
    std::string best;                 // the folder of the best checkpoint up to there; empty: none
    std::uint64_t metrics_bytes = 0;  // the length of metrics.jsonl
  };
  std::optional<Resumed> resumed = std::nullopt;
  // For the ready commands of a refusal: the command line as it would be typed, without --name, --run-dir,
  // --overwrite and --resume ("pmaptrain run configs/cnn.yaml"), and which of the first two were given.
  std::string command = "pmaptrain run CONFIG";
  bool explicit_name = false, explicit_dir = false;
  std::vector<std::filesystem::path> reads;  // files that the run needs: a folder that has them is not replaced
};

class RunFolder {
 public:
  // Whether claim() would be refused as things stand; locks nothing. Throws what claim() throws.
  static void check(const std::filesystem::path& dir, const RunFolderOptions& options);

  // Locks the folder where there is one to replace, and touches nothing else; where there is none, makes none. Throws
  // Error: usage when it exists (with the ready commands), or when --overwrite would replace what pmaptrain did not
  // write; resource when another process writes there, or when it may not be written.
  static RunFolder claim(const std::filesystem::path& dir, const RunFolderOptions& options);

  // Makes the folder (and those above it) and locks it, or takes out of it what pmaptrain wrote before, and writes
  // config.yaml. Of a run that is continued, everything stays but summary.json, the lines of metrics.jsonl after the
  // checkpoint and what a killed process left half done; its links lead to its checkpoints again. Throws Error and
  // leaves everything as it was: resource when that cannot be done, or when another process writes there by now; usage
  // when the folder is there by now.
  void begin(std::string_view config);

  const std::filesystem::path& path() const { return path_; }
  const Directory& directory() const { return directory_; }
  // A file directly in the folder, wherever that is moved.
  FilePlace place(const std::string& name) const { return directory_.place(name); }

  // Throws Error (failed) when the folder's path does not lead to it any more: it was moved, and the message says
  // where, or it was removed.
  void check_in_place() const;
  bool is_removed() const;
  // Its path, or where it was moved to.
  std::filesystem::path present_path() const;

  // What to tell the user: a file system without locks, an old run of which something could not be removed.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Commits checkpoints/step-NNNNNNNN: `fill` writes files into a temporary folder, which is flushed to the disk and
  // then renamed, so that a checkpoint is complete or not there; checkpoints/last then leads to it. One of the same
  // step is replaced. Throws Error (failed), and what `fill` throws; the temporary folder is then removed.
  void commit_checkpoint(std::int64_t step, const std::function<void(const Directory&)>& fill) const;

  // The same of checkpoints/best-NNNNNNNN, to which no link is made.
  void commit_best(std::int64_t step, const std::function<void(const Directory&)>& fill) const;

  // Removes the checkpoints that are not among the `keep` newest and that checkpoints/best does not lead to.
  void prune_checkpoints(std::int64_t keep) const;

  // Flushes a file directly in the folder to the disk, if it is there. Throws Error (failed).
  void flush_file(const std::string& name) const;

  // Makes checkpoints/<name> lead to the folder `checkpoint` beside it, in one rename. Throws Error (failed).
  void link_checkpoint(const std::string& name, const std::string& checkpoint) const;

 private:
  RunFolder(std::filesystem::path path, RunFolderOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}
  void adopt();
  bool make_folder();
  void open_folder();
  bool take_marker();
  void complete_marker();
  void replace_old(std::string_view config);
  void continue_old(std::string_view config);
  void commit(const std::string& name, const std::function<void(const Directory&)>& fill) const;
  void tidy_checkpoints(const RunFolderOptions::Resumed& resumed) const;
  void cut_metrics(std::uint64_t bytes);

  std::filesystem::path path_;
  RunFolderOptions options_;
  Directory directory_;
  Descriptor marker_;      // locked
  bool replaces_ = false;  // there is a run in it
  std::vector<std::string> warnings_;
};

}  // namespace pmaptrain::train
