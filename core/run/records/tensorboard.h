// TensorBoard's event files of a run: tensorboard/ in the run folder, for `tensorboard --logdir`.
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

// Whether a run writes an entry of this name in its folder tensorboard/: an event file, or the folder of a member.
bool is_event_entry(const std::string& name);

// The scalars of each logged step, epoch and evaluation, in one event file for each process that a run has; of an
// ensemble each member has files of its own, in member-<number>/. Each line of metrics.jsonl is one record, written at
// once; only the means of an epoch that is not complete are left out.
class TensorBoard {
 public:
  // Where a run continues, and what the files have of that step: a process may have been killed between a record and
  // the next checkpoint. Those records are not written again.
  struct Resumed {
    std::int64_t step = 0;
    std::set<std::pair<MemberNumber, std::string>> told;  // members, and the first tags of records
  };

  // Begins a file for each member, which comes after those that are there. `members`: of an ensemble; 0 without one.
  // The run folder outlives this. What cannot be written is warned of.
  TensorBoard(const Directory& run, std::int64_t members, Resumed resumed, const Warn& warn);

  void on(const Event& event);
  void flush();
  std::vector<std::string> missing() const;

 private:
  void write(MemberNumber member, std::int64_t step, const std::vector<Scalar>& scalars);

  Directory folder_;
  Resumed resumed_;
  bool holds_open_ = true;  // of many members the files would be too many
  std::int64_t steps_per_epoch_ = 0;
  std::string problem_;           // why there are no files at all
  std::deque<AppendFile> files_;  // by member
};

// Takes out of a run's event files what they say of steps after `step`, which a resumed run takes again. A file that is
// damaged is cut where the damage begins. Adds to `warnings` what was damaged, or could not be cut.
TensorBoard::Resumed cut_event_files(const Directory& run, std::int64_t step, std::vector<std::string>& warnings);

}  // namespace pmaptrain::train
