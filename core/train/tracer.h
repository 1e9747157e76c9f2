// Traces of some steps of a run (`run --trace`): who does what when, in a file for trace viewers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/span_log.h"
#include "core/runtime/backend.h"
#include "core/setup/setup.h"
#include "core/train/run_report.h"
#include "core/train/trace_report.h"

namespace pmaptrain::train {

struct TraceOptions {
  std::filesystem::path file;
  std::optional<StepRange> steps;  // by default five, from the second that the process runs
};

// Steps that are not traced cost a comparison: no clock is read for them.
class Tracer {
 public:
  // None is traced without options. `step`: completed before; `steps`: planned in total. Setup and module outlive this.
  // Throws Error (usage) for steps that the run does not take.
  Tracer(const std::optional<TraceOptions>& options, const Setup& setup, Module& module, std::int64_t step,
         std::int64_t steps);

  // For the threads that fill batches and write checkpoints; null where nothing is traced.
  SpanLog* loader() { return options_ ? &loader_ : nullptr; }
  SpanLog* checkpoints() { return options_ ? &checkpoints_ : nullptr; }
  // What the training loop does for a step, for the life of what is returned.
  SpanLog::Scope span(std::int64_t step, const char* name) { return {options_ ? &loop_ : nullptr, step, name}; }

  // How many steps after `step` may be submitted together: one where it is traced.
  std::int64_t most_together(std::int64_t step) const {
    if (!options_ || full_ || step >= range_.last) return std::numeric_limits<std::int64_t>::max();
    return std::max<std::int64_t>(range_.first - 1 - step, 1);
  }
  // Module::submit() of one training step.
  Ticket submit(std::int64_t step, int slot, std::span<const std::int64_t> members);

  // Whether the file can be written after this step: the last of the traced steps is done.
  bool is_due(std::int64_t step) const { return options_ && !written_ && (step >= range_.last || full_); }
  // Writes the file with the steps that there are, unless it is written; warns where it cannot be.
  void write(RunReport& report);
  // What prevented it; empty: nothing.
  const std::string& problem() const { return problem_; }
  // Of the file; none before it is written.
  const std::optional<TraceSummary>& summary() const { return summary_; }

 private:
  bool covers(std::int64_t step) const { return options_ && loop_.covers(step) && !full_; }

  const std::optional<TraceOptions> options_;
  const Setup& setup_;
  Module& module_;
  const StepRange range_;
  SpanLog loop_, loader_, checkpoints_;
  std::vector<TracedStep> steps_;
  std::size_t spans_ = 0;
  bool full_ = false, written_ = false;
  std::optional<TraceSummary> summary_;
  std::string problem_;
};

}  // namespace pmaptrain::train
