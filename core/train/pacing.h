// How far ahead of the devices the training loop submits steps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/clock.h"
#include "core/runtime/backend.h"
#include "core/train/setup.h"

namespace pmaptrain::train {

// The batches of the training entry that steps read at a time, where a loader prefetches: all slots but one.
int batches_held(const Module& module);

class Pacing {
 public:
  // `prefetches`: each step has a batch in a slot of its own. Otherwise all steps have the same, which never changes,
  // except that dropout `draws` by the positions of its rows, which do.
  Pacing(Module& module, const Timetable& timetable, bool prefetches, bool draws);

  // Whether a batch that was filled once serves all steps.
  bool batch_stays() const { return batch_stays_; }
  // Returns when one more step may be submitted: of a step that reads the memory of its batch, all steps that did
  // before are done.
  void wait_for_room() { module_.wait(oldest()); }
  // How many steps to submit after `step`: as many as nothing follows by the timetable, where they are short. So a
  // signal, which is looked for between two submits, ends a run at once.
  std::int64_t steps_after(std::int64_t step, std::int64_t end);
  void submitted(Ticket ticket);
  // Returns when all steps are done. Throws what has failed.
  void wait_for_all() { module_.wait(last_); }

 private:
  Ticket& oldest() { return tickets_[count_ % tickets_.size()]; }

  Module& module_;
  const Timetable& timetable_;
  const bool batch_stays_;
  std::int64_t most_at_once_ = 1, at_once_ = 1;
  std::vector<Ticket> tickets_;  // the last ones, in turn
  std::size_t count_ = 0;
  Ticket last_;
  Clock::time_point submitted_at_;
};

}  // namespace pmaptrain::train
