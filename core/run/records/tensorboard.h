// TensorBoard's event files of a run: tensorboard/ in the run folder, for `tensorboard --logdir`.
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

namespace pmaptrain::train {

inline constexpr std::string_view tensorboard_folder = "tensorboard";

// Whether a run writes an entry of this name in its folder tensorboard/: an event file, or the folder of a member.
bool is_event_entry(const std::string& name);

// The scalars of each logged step, epoch and evaluation, in one event file for each process that a run has; of an
// ensemble each member has files of its own, in member-<number>/. Each line of metrics.jsonl is one record, written at
// once; only the means of an epoch that is not complete are left out.
class TensorBoard {
 public:
  // Begins a file for each member, which comes after those that are there. `members`: of an ensemble; 0 without one.
  // `step`: where a run continues, 0 for a new one. Readers then drop what older files have of later steps. The run
  // folder outlives this. A file that cannot be written gives a warning.
  TensorBoard(const Directory& run, std::int64_t members, std::int64_t step, const Warn& warn);
  void on(const Event& event);
  void flush();
  std::vector<std::string> missing() const;

 private:
  void write(MemberNumber member, std::int64_t step, const std::vector<Scalar>& scalars);

  Directory folder_;
  bool holds_open_ = true;  // of many members the files would be too many
  std::int64_t steps_per_epoch_ = 0;
  std::string problem_;           // why there are no files at all
  std::deque<AppendFile> files_;  // by member
};

}  // namespace pmaptrain::train
