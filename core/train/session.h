// A run from its first step to its final checkpoint.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ops/all.h"
#include "core/run/records/events.h"
#include "core/run/run_folder.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"
#include "core/train/resume.h"
#include "core/train/tracer.h"

namespace pmaptrain::train {

struct SessionOptions {
  std::filesystem::path run_dir;  // the run folder itself
  RunFolderOptions folder;
  ResumePoint* resume = nullptr;          // where the run continues; outlives the session, which releases its files
  spec::Interval max_time;                // from the start of the process; else the config's
  std::optional<std::int64_t> max_steps;  // stop after this many in total, with a checkpoint
  std::optional<TraceOptions> trace;      // steps that are traced
  bool verify_replicas = false;           // private copies, compared at the log interval if the config names no other
  KernelChoice kernels = KernelChoice::best;
  std::function<void(const Working&)> working = {};  // told what takes long before run()
  const std::atomic<int>* stop = nullptr;            // non-zero: end after the steps under way
  // Called after every step, which are then submitted one by one; what a test damages here, the guards must find.
  std::function<void(Module&, std::int64_t step)> between_steps = {};
};

// A run that is accepted: its memory and its threads are there, the first batch is read, and the run folder is locked
// where there is one to replace. Nothing in that is touched before run().
class Session {
 public:
  // `setup` outlives this. Throws Error for what prevents a run.
  Session(const Setup& setup, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Trains. Events go to `consumers` and to the run folder's recorders. Returns how it ended: statuses done (the
  // duration, early stopping), stopped (max_steps, max_time, a signal), stopped by a guard (exit status 5), and failed
  // where records of the run are missing (exit status 1; Ended::missing says which). A run that a signal stops before
  // its first step writes nothing, emits nothing and leaves an old run folder as it was; Ended::run_dir is empty then.
  // Throws Error for what breaks a run; once the folder exists an Ended event with status "failed" is sent before, and
  // what was trained is in a checkpoint where that can still be written. To be called once.
  Ended run(std::span<Consumer* const> consumers);
  // Of the trace that run() wrote, if it did.
  const std::optional<TraceSummary>& trace_summary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Both of the above.
Ended train(const Setup& setup, const SessionOptions& options, std::span<Consumer* const> consumers);

}  // namespace pmaptrain::train
