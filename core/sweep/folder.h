// The folder of a sweep: who may write there, and its files.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/descriptor.h"

namespace pmaptrain::sweep {

struct FolderOptions {
  bool resume = false, overwrite = false;
};

class SweepFolder {
 public:
  // Whether a sweep runs there.
  static bool is_taken(const std::filesystem::path& path);
  // Throws what claim() would throw now. Locks nothing.
  static void check(const std::filesystem::path& path, const FolderOptions& options);
  // Creates the folder, or takes over the one that is there, and locks it until this object ends. With `overwrite`
  // removes what an earlier sweep left. Throws Error: usage, if there is a folder and neither option is given, or it is
  // not a sweep's; resource, if another sweep runs there or it cannot be written.
  static SweepFolder claim(const std::filesystem::path& path, const FolderOptions& options);

  const std::filesystem::path& path() const { return path_; }
  // Write the whole file or nothing. Throw Error (failed).
  void write(const std::string& name, const std::string& text) const;
  // configs/<trial>.yaml; returns its path.
  std::filesystem::path write_config(const std::string& trial, const std::string& text) const;

 private:
  std::filesystem::path path_;
  Descriptor marker_;  // locked
};

// Throws Error (usage) where `path` has no sweep, which `show` and `best` read.
void check_is_sweep(const std::filesystem::path& path);

}  // namespace pmaptrain::sweep
