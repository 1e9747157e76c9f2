// Submits the steps of the training loop: short steps in groups, and as far ahead of the devices as the module asks
// for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/input/batches/loader.h"
#include "core/runtime/backend.h"
#include "core/step/timetable.h"
#include "core/train/tracer.h"

namespace pmaptrain::train {

// The number of steps that are submitted together, on successive slots; 1 unless entries are submitted in groups.
int steps_in_group(const Module& module);

// The number of batches that submitted steps may still read while the loader fills others: all slots of the training
// entry but one group.
int batches_in_use(const Module& module);

// The number of steps after `step` up to the next event: `last`, or a multiple of one of `intervals` (0: never).
std::int64_t steps_until(std::int64_t step, std::int64_t last, std::initializer_list<std::int64_t> intervals);

// Whether the session acts at the end of every epoch. If an epoch is one step, it usually does not: the sums of the
// epoch are those of the step, so they are reported where another event is due.
bool ends_each_epoch(const step::Timetable& times);
// The number of steps after `step` up to the next one after which the session acts. The session ends at `last`.
std::int64_t steps_to_next_event(const step::Timetable& times, std::int64_t step, std::int64_t last);

class Pacing {
 public:
  // If the loader does not prefetch, one batch serves all steps. `draws`: whether layers draw random numbers. These
  // depend on the positions of the rows in the sample stream, so the positions are then updated for each step.
  // `entries`: of training, by the size of a batch. The other arguments outlive this.
  Pacing(Module& module, input::Loader& loader, Tracer& tracer, bool draws, std::vector<std::size_t> entries);

  // Waits for the first batch, before anything is submitted.
  void take_first_batch() { take(); }
  // Waits for the next batch, if it was not taken yet and the module has no steps in flight.
  void take_next_batch() {
    if (!has_batch_) take();
  }
  // Submits a group of at most `most` steps of these members after `step`, and returns their number. Waits until no
  // step reads the batches that the loader will overwrite.
  std::int64_t submit(std::int64_t step, std::int64_t most, std::span<const std::int64_t> members);
  // The entry of the newest step, which has its outputs.
  std::size_t newest_entry() const { return newest_entry_; }
  // Runs `step` again for these members, to restore its outputs, waits, and returns its entry. `step` must be a step
  // after which the guard kept all values (train.on_nonfinite: halt), so that it computes the same again. Afterwards
  // the loader continues after step `newest` and ends at step `last`. `any` tells whether something is true in any
  // process: if one of them cannot read the batch, none submits the step, and all throw Error.
  std::size_t repeat(std::int64_t step, std::span<const std::int64_t> members, std::int64_t newest, std::int64_t last,
                     const std::function<bool(bool own)>& any);
  // Waits for all submitted steps. Returns how many of them failed, or did not run because an earlier step failed;
  // these are the newest ones, and at most as many as tickets are kept. If there are any, the module's values are
  // undefined; otherwise they are those after the last step.
  std::int64_t wait_and_count_failed() const;

 private:
  std::int64_t max_group(std::int64_t step) const;
  void take();

  Module& module_;
  input::Loader& loader_;
  Tracer& tracer_;
  const bool batch_stays_;  // one batch serves all steps
  const std::vector<std::size_t> entries_;
  std::size_t newest_entry_;
  input::Batch batch_;           // that was taken last
  bool has_batch_ = false;       // a batch was taken that no step has read
  std::vector<Ticket> tickets_;  // of the last steps, as a ring
  std::size_t count_ = 0;
  Ticket last_;
};

}  // namespace pmaptrain::train
