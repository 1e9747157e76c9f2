// TensorBoard's event files: the folder tensorboard/ in a run folder, for `tensorboard --logdir`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/files/append_file.h"
#include "core/run/files/directory.h"
#include "core/run/records/event_record.h"
#include "core/run/records/events.h"

namespace pmaptrain::run {

inline constexpr std::string_view tensorboard_folder = "tensorboard";

// Whether a run writes an entry of this name in tensorboard/: an event file, or the folder of a member.
bool is_event_entry(const std::string& name);

// Writes the scalars of each logged step, epoch and evaluation. Each process of a run writes one event file; for an
// ensemble, one for each member, in member-<number>/. Each line of metrics.jsonl becomes one record, in one write,
// except for the means of an incomplete epoch.
class TensorBoard {
 public:
  // Creates a file for each member, named to follow the existing files. `members` is the size of an ensemble, or 0
  // without one. `step` is the step from which a run continues, or 0: readers then drop what the existing files have of
  // later steps. The run folder outlives this. Warns of files that cannot be written.
  TensorBoard(const Directory& run, std::int64_t members, std::int64_t step, const Warn& warn);

  void on(const Event& event);
  void flush();
  std::vector<std::string> missing() const;

 private:
  void write(MemberNumber member, std::int64_t step, const std::vector<Scalar>& scalars);

  Directory folder_;
  bool holds_open_ = true;  // false for many members: too many open files
  std::int64_t steps_per_epoch_ = 0;
  std::string problem_;           // why there are no files
  std::deque<AppendFile> files_;  // by member
};

}  // namespace pmaptrain::run
