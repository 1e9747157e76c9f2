// The folder of one run: who may write into it, and how files and checkpoints get there whole.
//
// A folder that pmaptrain wrote holds the file ".pmaptrain", whose first line says so. Its writer holds an exclusive
// lock on that file for as long as it lives; the lock goes with the process, however that ends. Only such a folder is
// ever replaced, and of it only what pmaptrain writes: files that someone put there stay.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/record_file.h"

namespace pmaptrain::train {

struct RunFolderOptions {
  bool overwrite = false;
  // For the ready commands of a refusal: the command line as it would be typed, without --name, --run-dir and
  // --overwrite ("pmaptrain run configs/cnn.yaml"), and which of the first two were given.
  std::string command = "pmaptrain run CONFIG";
  bool explicit_name = false, explicit_dir = false;
  bool resume_available = false;
  std::vector<std::filesystem::path> reads;  // files that the run needs: a folder that has them is not replaced
};

class RunFolder {
 public:
  // Whether create() would be refused as things stand; creates and locks nothing. Throws what create() throws.
  static void check(const std::filesystem::path& dir, const RunFolderOptions& options);

  // Makes the folder (and those above it) and locks it. Throws Error: usage when it exists (with the ready commands),
  // or when --overwrite would replace what pmaptrain did not write; resource when another process writes there, or
  // when it cannot be made.
  static RunFolder create(const std::filesystem::path& dir, const RunFolderOptions& options);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path config() const { return path_ / "config.yaml"; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  std::filesystem::path log() const { return path_ / "log.txt"; }
  std::filesystem::path summary() const { return path_ / "summary.json"; }

  // What to tell the user: a file system without locks.
  const std::vector<std::string>& warnings() const { return warnings_; }

  // Writes config.yaml. Throws Error (failed).
  void write_config(std::string_view text) const;

  // Commits checkpoints/step-NNNNNNNN: `fill` writes files into a temporary folder, which is flushed to the disk and
  // then renamed, so that a checkpoint is complete or not there; checkpoints/last then leads to it. One of the same
  // step is replaced. Throws Error (failed), and what `fill` throws; the temporary folder is then removed. Returns the
  // checkpoint's folder.
  std::filesystem::path commit_checkpoint(std::int64_t step,
                                          const std::function<void(const std::filesystem::path&)>& fill) const;

  // Makes checkpoints/<name> lead to the checkpoint of `step`, in one rename. Throws Error (failed).
  void link_checkpoint(const std::string& name, std::int64_t step) const;

 private:
  RunFolder(std::filesystem::path path, Descriptor lock, std::vector<std::string> warnings)
      : path_(std::move(path)), lock_(std::move(lock)), warnings_(std::move(warnings)) {}

  std::filesystem::path path_;
  Descriptor lock_;
  std::vector<std::string> warnings_;
};

// "step-00000100"
std::string checkpoint_name(std::int64_t step);

// The folder of a run's checkpoint: "last", "best" or a step. Throws Error (usage) that lists the checkpoints there
// are.
std::filesystem::path find_checkpoint(const std::filesystem::path& run, const std::string& which);

}  // namespace pmaptrain::train
