// TensorBoard's event files: the folder tensorboard/ in a run folder, for `tensorboard --logdir`.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/run/files/append_file.h"
#include "core/run/files/directory.h"
#include "core/run/records/event_record.h"
#include "core/run/records/events.h"

namespace pmaptrain::train {

inline constexpr std::string_view tensorboard_folder = "tensorboard";

// Whether a run writes an entry of this name in tensorboard/: an event file, or the folder of a member.
bool is_event_entry(const std::string& name);

// Writes the scalars of each logged step, epoch and evaluation. Each process of a run writes one event file; for an
// ensemble, one for each member, in member-<number>/. Each line of metrics.jsonl becomes one record, in one write,
// except for the means of an incomplete epoch.
class TensorBoard {
 public:
  // The step from which a run continues, and the records that the files already have of that step, because a process
  // was killed between a record and the next checkpoint. These records are not written again.
  struct Resumed {
    std::int64_t step = 0;
    std::set<std::pair<MemberNumber, std::string>> told;  // members, and the first tags of their records
  };

  // Creates a file for each member, named to follow the existing files. `members` is the size of an ensemble, or 0
  // without one. The run folder outlives this. Warns of files that cannot be written.
  TensorBoard(const Directory& run, std::int64_t members, Resumed resumed, const Warn& warn);

  void on(const Event& event);
  void flush();
  std::vector<std::string> missing() const;

 private:
  void write(MemberNumber member, std::int64_t step, const std::vector<Scalar>& scalars);

  Directory folder_;
  Resumed resumed_;
  bool holds_open_ = true;  // false for many members: too many open files
  std::int64_t steps_per_epoch_ = 0;
  std::string problem_;           // why there are no files
  std::deque<AppendFile> files_;  // by member
};

// Removes from a run's event files the records of steps after `step`, which a resumed run repeats. A damaged file is
// cut where the damage begins. Adds to `warnings` the files that were damaged or could not be cut.
TensorBoard::Resumed cut_event_files(const Directory& run, std::int64_t step, std::vector<std::string>& warnings);

}  // namespace pmaptrain::train
