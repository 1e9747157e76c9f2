// The report of runs: one HTML file that contains all that it shows and loads nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/report/html/sweep_table.h"
#include "core/report/runs/predictions.h"
#include "core/report/runs/run_record.h"
#include "core/report/runs/trace_file.h"
#include "core/setup/memory.h"

namespace pmaptrain::report {

// What a report shows of a run beside its folder. What is missing has a reason.
struct RunExtras {
  std::optional<SplitPredictions> predictions;
  std::string predictions_problem;
  std::string plan;                      // the document of validate_json()
  std::vector<setup::MemoryRow> memory;  // of the plan
  std::string plan_problem;
};

struct Page {
  std::string title;
  std::vector<RunRecord> runs;    // at least one, but for sweeps
  std::vector<RunExtras> extras;  // one for each run
  std::optional<TraceTable> trace;
  std::vector<SweepTable> sweeps;
};

// Every report begins with it. A file that does may be replaced by another report.
inline constexpr std::string_view page_head = "<!doctype html>\n<!-- a report of pmaptrain -->\n";

std::string html_page(const Page& page);

}  // namespace pmaptrain::report
