// --trace and --trace-steps, and what they tell at the end.
#pragma once

#include <optional>
#include <string>

#include "app/options/arguments.h"
#include "core/train/tracer.h"

namespace pmaptrain::app {

struct TraceOption {
  std::optional<std::string> file, steps;

  void add_to(Arguments& arguments);
  // None where there is no --trace. Throws Error (usage) for steps that are no range, for a file that is there already
  // (but for a trace of ours with --overwrite), and for one in a folder that there is not.
  std::optional<train::TraceOptions> accepted(bool overwrite) const;
};

// A table: how busy workers and logical devices were, and where the time went. A line where nothing was traced.
std::string trace_text(const std::optional<train::TraceSummary>& summary, int columns = 0);

}  // namespace pmaptrain::app
