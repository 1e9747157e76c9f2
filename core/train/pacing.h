// How far ahead of the devices the training loop submits steps.
#pragma once

#include <cstddef>
#include <vector>

#include "core/runtime/backend.h"

namespace pmaptrain::train {

// The batches of the training entry that steps read at a time, where a loader prefetches: all slots but one.
int batches_held(const Module& module);

class Pacing {
 public:
  // `prefetches`: each step has a batch in a slot of its own. Otherwise all steps have the same, which never changes,
  // except that dropout `draws` by the positions of its rows, which do.
  Pacing(Module& module, bool prefetches, bool draws);

  // Whether a batch that was filled once serves all steps.
  bool batch_stays() const { return batch_stays_; }
  // Returns when one more step may be submitted: what the next batch is written over, no step reads any more.
  void wait_for_room() { module_.wait(oldest()); }
  void submitted(Ticket ticket);
  // Returns when all steps are done. Throws what has failed.
  void wait_for_all() { module_.wait(last_); }

 private:
  Ticket& oldest() { return tickets_[count_ % tickets_.size()]; }

  Module& module_;
  const bool batch_stays_;
  std::vector<Ticket> tickets_;  // the last ones, in turn
  std::size_t count_ = 0;
  Ticket last_;
};

}  // namespace pmaptrain::train
