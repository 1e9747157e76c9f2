// A trace as a file for trace viewers, and as a summary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/span_log.h"
#include "core/mesh/mesh.h"
#include "core/runtime/backend.h"

namespace pmaptrain::train {

struct StepRange {
  std::int64_t first = 1, last = 1;  // both included, from 1
};

struct TracedStep {
  std::int64_t step = 0;  // from 1
  StepTrace trace;
};

struct TracedRun {
  std::string name;  // of the run
  Mesh mesh;         // of a member
  bool is_ensemble = false;
  std::vector<InstructionReport> instructions;  // of the programs that ran, one after the other
  std::vector<TracedStep> steps;                // at least one
  std::vector<Span> loop, loader, checkpoints;
};

// The beginning of every trace file. A file that begins with it may be overwritten.
inline constexpr std::string_view trace_head = "{\"otherData\":{\"program\":\"pmaptrain\"";

// JSON in Chrome's Trace Event Format, which Perfetto also reads. It has a row for each worker, with the work of its
// tasks by the names of layers, and its waits; for each logical device, with the times when a worker worked on its
// rows; and for the training loop, the loader and the writer of checkpoints. Times are in microseconds since the first
// event.
std::string chrome_trace(const TracedRun& traced);

struct TraceSummary {
  std::string file;
  StepRange steps;
  bool is_cut_short = false;  // the trace reached the largest size
  double seconds = 0;         // from the beginning of the first step to the end of the last one
  // Shares of `seconds`. The rest is the training loop: the batch, logging, evaluations.
  struct Worker {
    double busy = 0, waits = 0;
  };
  std::vector<Worker> workers;
  std::vector<double> devices;  // by member, then by device: the share of `seconds` in which a worker worked on it
  // The time of the workers by layer and op, the longest first.
  struct Item {
    std::string from, op;
    double seconds = 0;  // over all workers and steps
  };
  std::vector<Item> items;
};
TraceSummary summarise(const TracedRun& traced);

}  // namespace pmaptrain::train
