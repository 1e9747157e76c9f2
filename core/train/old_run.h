// What a run before left in a run folder, when another takes its place: renamed first, so that all of it can come back
// while the new one may still fail to begin, and removed last.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/train/directory.h"

namespace pmaptrain::train {

// Whether pmaptrain writes an entry of this name directly in a run folder, beside config.yaml and its marker.
bool is_written_by_a_run(const std::string& name);

// Whether a process of ours that was killed leaves such an entry in a run folder.
bool is_left_behind(const std::string& name);

class OldRun {
 public:
  // Renames what a run writes there but its config.yaml, which is to be replaced. Throws Error (failed) where that
  // cannot be; what was renamed has its names again then.
  explicit OldRun(const Directory& directory);
  // Gives everything its name again.
  void restore() noexcept;
  // Removes it, and what was left behind in the folder. What is in the way stays and is named in the result; files that
  // somebody put beside the checkpoints stay where they were.
  std::vector<std::string> remove();

 private:
  const Directory& directory_;
  std::vector<std::pair<std::string, std::string>> renamed_;  // from, to
};

}  // namespace pmaptrain::train
