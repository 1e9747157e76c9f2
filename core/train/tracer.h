// Traces some steps of a run (`run --trace`): what each thread does at what time, as a file for trace viewers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/span_log.h"
#include "core/runtime/backend.h"
#include "core/spec/spec.h"
#include "core/train/run_report.h"
#include "core/train/trace_report.h"

namespace pmaptrain::train {

struct TraceOptions {
  std::filesystem::path file;
  std::optional<StepRange> steps;  // by default five, from the second step of the process
};

// Reads no clock for steps that are not traced.
class Tracer {
 public:
  // Traces nothing without options. `step` is the number of completed steps, `steps` the planned total. Spec and module
  // outlive this. Throws Error (usage) for a range that is not part of the steps.
  Tracer(const std::optional<TraceOptions>& options, const spec::Spec& spec, Module& module, std::int64_t step,
         std::int64_t steps);

  // Logs for the threads that fill batches and write checkpoints; null if nothing is traced.
  SpanLog* loader() { return options_ ? &loader_ : nullptr; }
  SpanLog* checkpoints() { return options_ ? &checkpoints_ : nullptr; }
  // Records work of the training loop for a step, until the returned object is destroyed.
  SpanLog::Scope span(std::int64_t step, const char* name) { return {options_ ? &loop_ : nullptr, step, name}; }

  // The number of steps after `step` that may be submitted together: one if the next step is traced.
  std::int64_t max_group(std::int64_t step) const {
    if (!options_ || full_ || step >= range_.last) return std::numeric_limits<std::int64_t>::max();
    return std::max<std::int64_t>(range_.first - 1 - step, 1);
  }
  // Submits one training step of an entry, as Module::submit() or traced.
  Ticket submit(std::int64_t step, std::size_t entry, int slot, std::span<const std::int64_t> members);

  // Whether the file can be written after this step, because the last of the traced steps is complete.
  bool is_due(std::int64_t step) const { return options_ && !written_ && (step >= range_.last || full_); }
  // Writes the file with the steps traced so far, unless it was written already. Emits a warning if it fails.
  void write(RunReport& report);
  // Why writing failed; empty: it did not.
  const std::string& problem() const { return problem_; }
  // The summary of the file; none before it is written.
  const std::optional<TraceSummary>& summary() const { return summary_; }

 private:
  bool covers(std::int64_t step) const { return options_ && loop_.covers(step) && !full_; }

  const std::optional<TraceOptions> options_;
  const spec::Spec& spec_;
  Module& module_;
  const StepRange range_;
  SpanLog loop_, loader_, checkpoints_;
  std::vector<TracedStep> steps_;
  std::vector<InstructionReport> instructions_;         // of all entries that were traced
  std::map<std::size_t, std::int32_t> first_of_entry_;  // where those of an entry begin
  std::size_t spans_ = 0;
  bool full_ = false, written_ = false;
  std::optional<TraceSummary> summary_;
  std::string problem_;
};

}  // namespace pmaptrain::train
