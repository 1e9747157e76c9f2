// The files of an earlier run in a run folder that a new run takes over. They are renamed first and removed last, so
// that they can be restored while the new run may still fail to begin.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/run/files/directory.h"

namespace pmaptrain::run {

// Whether pmaptrain writes an entry of this name directly in a run folder, apart from config.yaml and the marker.
bool is_written_by_a_run(const std::string& name);

// Whether the entry is a temporary one that a killed process of pmaptrain left in a run folder.
bool is_leftover(const std::string& name);

// Renames everything that a run writes in the folder, except for its config.yaml. The destructor restores the names
// unless remove() was called.
class OldRun {
 public:
  // Throws Error (failed) if an entry cannot be renamed.
  explicit OldRun(const Directory& directory);
  ~OldRun();
  OldRun(const OldRun&) = delete;
  OldRun& operator=(const OldRun&) = delete;

  // Removes the old run, and the files that killed processes left in the folder. Returns the names of entries that
  // could not be removed. Files that pmaptrain did not write stay, also beside checkpoints and event files.
  std::vector<std::string> remove();

 private:
  void put_aside(const std::string& name);
  void restore();

  const Directory& directory_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // from, to
};

}  // namespace pmaptrain::run
