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
#include "core/runtime/agreement.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"
#include "core/train/resume.h"
#include "core/train/tracer.h"

namespace pmaptrain::train {

struct SessionOptions {
  std::filesystem::path run_dir;  // the run folder itself
  run::RunFolderOptions folder;
  ResumePoint* resume = nullptr;          // where the run continues; outlives the session
  spec::Interval max_time;                // counted from the start of the process; by default train.max_time
  std::optional<std::int64_t> max_steps;  // stop with a checkpoint when the run has this many steps
  std::optional<TraceOptions> trace;      // steps to trace
  std::vector<std::string> notes;         // told when the run begins, after the notes of the config
  bool verify_replicas = false;           // use private copies; compare them at the log interval by default
  KernelChoice kernels = KernelChoice::best;
  Agreement* agreement = nullptr;  // with the other processes that carry the run; outlives the session. Null: none
  std::function<void(const run::Working&)> working = {};  // reports long work before run()
  const std::atomic<int>* stop = nullptr;                 // non-zero: end after the current steps
  // For tests: called after every step; steps are then submitted one by one. A test can damage values of the module
  // here, to see whether a guard finds it.
  std::function<void(Module&, std::int64_t step)> between_steps = {};
};

// A run that is ready to begin: its memory and threads exist, the first batch is read, and a run folder that is to be
// replaced or continued is locked. The folder is not changed before run().
class Session {
 public:
  // `setup` must outlive the session. Throws Error if the run cannot begin.
  Session(const setup::Setup& setup, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Trains, and returns how the run ended. Events go to `consumers` and to the run folder's recorders. Can be called
  // once.
  //
  // The status is done (duration, early stopping), stopped (max_steps, max_time, a signal; or a guard, with exit status
  // 5), or failed if records of the run are missing (exit status 1; Ended::missing says which). If a signal stops the
  // run before its first step, nothing is written or emitted, an old run folder is unchanged, and Ended::run_dir is
  // empty.
  //
  // Throws Error if the run fails. If the folder exists by then, an Ended event with status "failed" is emitted first,
  // and the trained parameters are saved in a checkpoint if possible.
  run::Ended run(std::span<run::Consumer* const> consumers);
  // The summary of the trace; none if run() wrote no trace.
  const std::optional<TraceSummary>& trace_summary() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Makes a session and runs it.
run::Ended train(const setup::Setup& setup, const SessionOptions& options, std::span<run::Consumer* const> consumers);

}  // namespace pmaptrain::train
