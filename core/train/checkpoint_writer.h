// Checkpoints that are written while training goes on.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/base/span_log.h"
#include "core/run/checkpoint.h"
#include "core/train/write_checkpoint.h"

namespace pmaptrain::train {

// An input of the training program, and where a snapshot has it: `bytes` for each member, one behind the other.
struct SnapshotPart {
  std::size_t input = 0, offset = 0, bytes = 0;
};

// The bytes of a snapshot of everything that a checkpoint has; 0 where a run takes none.
std::size_t snapshot_bytes(const Setup& setup);

// A thread that writes one checkpoint at a time, from a snapshot.
class CheckpointWriter {
 public:
  // Allocates the snapshot's memory, which is used when the first one is taken, and starts the thread. Setup, folder,
  // reader and log outlive this. `log`: when checkpoints of the steps that it covers were written. Throws Error
  // (resource).
  CheckpointWriter(const Setup& setup, const RunFolder& folder, SlicedReader& reader, SpanLog* log = nullptr);
  // Waits for the write under way.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Takes a snapshot of the module and returns; the thread writes it. Waits first for the write before.
  void save(const RunState& state);
  // Waits for the write under way, then writes from the module itself, without a snapshot. Throws Error (failed).
  void save_now(const RunState& state);
  // Waits for the write under way, if any.
  void wait();
  bool is_writing() const;
  // The write that failed since the last call, if one did.
  struct Failure {
    std::int64_t step = 0;
    std::string why;
  };
  std::optional<Failure> take_failure();

 private:
  void run();
  void commit(const RunState& state, const Slices& slices) const;
  void take_snapshot();

  const Setup& setup_;
  const RunFolder& folder_;
  SlicedReader& reader_;
  SpanLog* const log_;
  const std::vector<SnapshotPart> parts_;
  std::unique_ptr<std::byte[]> snapshot_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by the mutex.
  std::optional<RunState> job_;  // the write under way
  std::optional<Failure> failure_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace pmaptrain::train
