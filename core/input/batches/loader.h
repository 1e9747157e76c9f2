// Batches in order, prefetched by a thread while a step runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "core/base/span_log.h"
#include "core/input/batches/batch.h"

namespace pmaptrain::input {

// A filled batch.
struct Batch {
  std::int64_t step = 0;      // from 0 over all epochs
  std::int64_t epoch = 0;     // from 0
  std::int64_t examples = 0;  // rows without padding, which are the first ones
  int slot = 0;               // index of its memory in the slots of the loader
  std::size_t size = 0;  // 0: its sequences are as long as in the dataset; i: as Shorter i - 1 of the loader has them
};

// For steps whose sequences all end by position `positions`: the dataset up to there, and memory as many slots as for
// whole sequences.
struct Shorter {
  std::int64_t positions = 0;
  std::shared_ptr<const data::Dataset> dataset;
  std::vector<BatchBuffers> slots;
};

struct LoaderOptions {
  std::int64_t first_step = 0;                                       // of a resumed run
  std::int64_t end_step = std::numeric_limits<std::int64_t>::max();  // one past the last step
  int held = 1;            // batches that the caller reads at a time: fewer than there are slots
  SpanLog* log = nullptr;  // when the batches of the steps that it covers were filled; outlives the loader
};

// The number of batches in memory: one for the current step, the others for prefetching. Only one if a batch is the
// whole dataset in file order without random changes, because it never changes.
int batches_in_memory(const Stream& stream, const BatchPlan& plan);

class Loader {
 public:
  // Fills the memory of `slots` in turn; it must outlive the loader, and there are at least two slots if
  // batches_in_memory() > 1. Of several streams, which are random alike or not at all, each has a batch of its own in
  // every slot: `slots` has their memory one after the other, slot by slot. Starts the thread. There is none if
  // batches_in_memory() is 1: this batch is filled once and reused. Nothing is allocated after the constructor, but for
  // images that are decoded or changed at random, and once for sequences that are cut off or ordered by length. The
  // plan and the streams must be for this dataset. A batch has the first of `shorter`, in ascending order of their
  // positions, that has all sequences of the global batch; there are none for several streams. Throws Error (resource)
  // if the thread cannot be started.
  Loader(std::shared_ptr<const data::Dataset> dataset, std::vector<Stream> streams, const BatchPlan& plan,
         std::vector<BatchBuffers> slots, const LoaderOptions& options = {}, std::vector<Shorter> shorter = {});
  Loader(std::shared_ptr<const data::Dataset> dataset, const Stream& stream, const BatchPlan& plan,
         std::vector<BatchBuffers> slots, const LoaderOptions& options = {})
      : Loader(std::move(dataset), std::vector{stream}, plan, std::move(slots), options) {}
  // Ends the thread and discards prefetched batches.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch; waits until it is filled. Its memory is unchanged until the next call or, with LoaderOptions::held,
  // for that many calls. An exception thrown while a batch was filled is rethrown by the call for that batch and by all
  // later calls. Throws std::out_of_range past the end step. Not thread-safe.
  Batch next();

  // Continues with the steps [first_step, end_step) and discards prefetched batches. No batch has been read before.
  void restart(std::int64_t first_step, std::int64_t end_step);

  // Whether a thread prefetches batches.
  bool prefetches() const;

 private:
  class Ring;
  std::unique_ptr<Ring> ring_;
};

}  // namespace pmaptrain::input
