// What a run before left in a run folder, when another takes its place: renamed first, so that all of it can come back
// while the new one may still fail to begin, and removed last.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/run/files/directory.h"

namespace pmaptrain::train {

// Whether pmaptrain writes an entry of this name directly in a run folder, beside config.yaml and its marker.
bool is_written_by_a_run(const std::string& name);

// Whether a process of ours that was killed leaves such an entry in a run folder.
bool is_left_behind(const std::string& name);

// Puts aside what a run writes there but its config.yaml. Unless remove() is called, all of it has its names again when
// this ends.
class OldRun {
 public:
  // Throws Error (failed) where something cannot be put aside.
  explicit OldRun(const Directory& directory);
  ~OldRun();
  OldRun(const OldRun&) = delete;
  OldRun& operator=(const OldRun&) = delete;

  // Removes it, and the files that killed processes left in the folder. Returns the names of what could not be removed.
  // Files of others beside the checkpoints and event files stay where they are.
  std::vector<std::string> remove();

 private:
  void put_aside(const std::string& name);
  void restore();

  const Directory& directory_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // from, to
};

}  // namespace pmaptrain::train
