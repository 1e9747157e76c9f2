// Batches in order, filled ahead by a thread while the step before runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/data/batch.h"

namespace pmaptrain::data {

// A filled batch.
struct Batch {
  std::int64_t step = 0;      // from 0 over all epochs
  std::int64_t epoch = 0;     // from 0
  std::int64_t examples = 0;  // rows that are no padding: the first ones
  int slot = 0;               // of the memory that the loader was given
};

struct LoaderOptions {
  std::int64_t first_step = 0;                                       // where a resumed run goes on
  std::int64_t end_step = std::numeric_limits<std::int64_t>::max();  // the first step that is not wanted
};

// How many batches lie in memory: one is read by a step while others are filled ahead. One alone where that is the
// whole dataset in file order, since it never changes.
int batches_in_memory(const Sampler& sampler, const BatchPlan& plan);

class Loader {
 public:
  // Fills the memory of `slots` in turn, which outlives the loader; at least batches_in_memory() or two of them. Starts
  // the thread, unless one batch is the whole dataset in file order: then it is filled once and handed out again and
  // again. Nothing is allocated after the constructor. The plan and the sampler are for this dataset. Throws Error
  // (resource) when the thread cannot be started.
  Loader(std::shared_ptr<const Dataset> dataset, const Sampler& sampler, const BatchPlan& plan,
         std::vector<BatchBuffers> slots, const LoaderOptions& options = {});
  // Ends the thread, also when it waits; batches that were filled ahead are given up.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, whose memory stays as it is until the next call; waits until it is filled. What was thrown while a
  // batch was filled is rethrown in that batch's turn and ever after. Throws std::out_of_range past the end step. One
  // caller at a time.
  Batch next();

  // Hands out the steps [first_step, end_step) next; what was filled ahead is given up. No batch is read before.
  void restart(std::int64_t first_step, std::int64_t end_step);

  // Whether a thread fills batches ahead.
  bool prefetches() const;

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

}  // namespace pmaptrain::data
