// How the training loop submits steps: some together where they are short, and as far ahead of the devices as the
// module likes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/data/batches/loader.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"
#include "core/train/tracer.h"

namespace pmaptrain::train {

// The batches of the training entry that steps read at a time, where a loader prefetches: all but those of a group.
int batches_held(const Module& module);

// The steps after `step` up to the next one at which something happens: `last`, or a multiple of one of `intervals`, of
// which 0 is never.
std::int64_t steps_until(std::int64_t step, std::int64_t last, std::initializer_list<std::int64_t> intervals);

// Whether something is done at the end of each epoch. Epochs of one step need none, since their sums are that step's:
// they are ended where something else happens.
bool ends_each_epoch(const Setup& setup);
// The same up to the next step after which a session does something; `times` are the session's, which ends at `last`.
std::int64_t steps_to_next_event(const Setup& setup, const Timetable& times, std::int64_t step, std::int64_t last);

class Pacing {
 public:
  // A loader that does not prefetch has one batch for all steps, which never changes, except that dropout `draws` by
  // the positions of its rows, which do. All outlive this.
  Pacing(Module& module, data::Loader& loader, Tracer& tracer, bool draws);

  // Before anything is submitted: waits for the first batch.
  void take_first_batch() { take(); }
  // Submits steps of these members after `step`, as many as go together and at most `most`, and returns how many. Waits
  // until no step reads any more what their batches are written over.
  std::int64_t submit(std::int64_t step, std::int64_t most, std::span<const std::int64_t> members);
  // Runs `step` again of these members alone, for its outputs, and waits: a step after which a guard has kept all their
  // values (train.on_nonfinite: halt) has the same ones. Then the loader is behind `newest` again, and ends at `last`.
  void repeat(std::int64_t step, std::span<const std::int64_t> members, std::int64_t newest, std::int64_t last);
  // How many of the last steps have failed, or have not been run because an earlier one has; then the module's values
  // are undefined, and else those of a whole step. Waits for all.
  std::int64_t failed_steps() const;

 private:
  std::int64_t most_together(std::int64_t step) const;
  void take();

  Module& module_;
  data::Loader& loader_;
  Tracer& tracer_;
  const bool batch_stays_;       // filled once, it serves all steps
  int slot_ = 0;                 // of the batch that was taken last
  bool has_batch_ = false;       // which no step has read yet
  std::vector<Ticket> tickets_;  // of the last steps, in turn
  std::size_t count_ = 0;
  Ticket last_;
};

}  // namespace pmaptrain::train
