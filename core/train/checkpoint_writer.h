// Writes checkpoints while training goes on.
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

// An input of the training program (by index) and its place in a snapshot: from `offset` on, `bytes` bytes for each
// member, one member after another.
struct SnapshotPart {
  std::size_t input = 0, offset = 0, bytes = 0;
};

// The size of a snapshot of everything that a checkpoint has; 0 for a run that saves only at its end.
std::size_t snapshot_bytes(const setup::Setup& setup);

// A thread that writes checkpoints from a snapshot, one at a time.
class CheckpointWriter {
 public:
  // Allocates memory for the snapshot and starts the thread. Setup, folder, reader and log outlive this. `log` receives
  // the times of writes during the steps that it covers. Throws Error (resource).
  CheckpointWriter(const setup::Setup& setup, const run::RunFolder& folder, setup::SlicedReader& reader,
                   SpanLog* log = nullptr);
  // Waits for a write in progress.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits for a write in progress, takes a snapshot of the module and returns. The thread writes the snapshot. If
  // processes have different members or shards of what is written, a snapshot would hold all of it in one process, and
  // save_now() is called instead. All processes call this.
  void save(const run::RunState& state);
  // Waits for a write in progress, then writes a checkpoint from the module, without a snapshot. All processes call it.
  // Throws Error (failed).
  void save_now(const run::RunState& state);
  // Whether processes have different members or shards of what is written, so that they read it together.
  bool is_divided() const { return reader_.is_divided(); }
  // Waits for a write in progress, if there is one.
  void wait();
  // Removes the checkpoints that the config does not keep, as each write does.
  void prune() const;
  bool is_writing() const;
  // A write that failed since the last call of take_failure().
  struct Failure {
    std::int64_t step = 0;
    std::string why;
  };
  std::optional<Failure> take_failure();

 private:
  void run();
  void commit(const run::RunState& state, const ReadSlices& slices) const;
  void take_snapshot();

  const setup::Setup& setup_;
  const run::RunFolder& folder_;
  setup::SlicedReader& reader_;
  SpanLog* const log_;
  const std::vector<SnapshotPart> parts_;
  std::unique_ptr<std::byte[]> snapshot_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // Guarded by the mutex.
  std::optional<run::RunState> job_;  // the write in progress
  std::optional<Failure> failure_;
  bool stop_ = false;

  std::thread thread_;
};

}  // namespace pmaptrain::train
