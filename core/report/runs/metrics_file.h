// The measures of a run, read back from its metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/records/events.h"

namespace pmaptrain::report {

// The values of one measure along a run.
struct Series {
  std::string event;    // "step", "epoch" or "eval"
  std::string split;    // of an evaluation; else "train"
  std::string measure;  // "loss"
  run::MemberNumber member;
  std::vector<std::int64_t> steps;
  // Of training until the step. Lines of epochs and evaluations do not have it; it is interpolated between those of
  // steps.
  std::vector<double> seconds;
  std::vector<double> values;  // NaN for null
};

struct Metrics {
  std::vector<Series> series;         // in the order in which the file first has them
  std::vector<run::Changed> changes;  // by --change

  // The series of an event and a measure; null if there is none. The first member's unless one is given.
  const Series* find(std::string_view event, std::string_view split, std::string_view measure,
                     run::MemberNumber member = std::nullopt) const;
};

// Reads the whole lines of the file: the run may be going on, or may have been killed within a line. Throws Error
// (data) if the file cannot be read, and for a line that is not one of metrics.jsonl, with its number.
Metrics read_metrics(const std::filesystem::path& file);

}  // namespace pmaptrain::report
