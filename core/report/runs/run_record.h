// A run, read back from its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/report/runs/metrics_file.h"
#include "core/run/records/events.h"
#include "core/spec/load.h"

namespace pmaptrain::report {

// Whether the folder is that of a run.
bool is_run(const std::filesystem::path& folder);

// How a run stands.
struct Standing {
  // As in summary.json: done, stopped or failed. Of a run that has none: "running" if a process writes the folder, else
  // "killed", which --resume can continue.
  std::string status;
  std::optional<run::Ended> ended;  // summary.json
  std::string version;              // of the program, from summary.json; else empty
};
// Throws Error (data) for a damaged summary.json.
Standing read_standing(const std::filesystem::path& folder);

// The best value of a measure over the evaluations of validation, else of test, of all members; without any, over the
// means of epochs, else over the logged steps. Of equal values that with the lower loss, as a run selects its best.
struct BestValue {
  std::string measure, split;
  double value = 0;
  std::int64_t step = 0;
  run::MemberNumber member;
  bool larger_is_better = false;
  bool is_of_training = false;  // there are no evaluations
};
std::optional<BestValue> best_value(const Metrics& metrics, const std::string& measure, bool larger_is_better);

// The measure by which a config selects its best checkpoint; the loss if it selects none.
struct Selection {
  std::string measure = "loss";
  bool larger_is_better = false;
};
Selection selection_of(const spec::Spec& spec);

// The best of a run: what the state of its last checkpoint has, which checkpoints/best holds. The best of all members,
// of equal ones that with the lower loss. By `metrics`, and the measure by which `spec` selects, where it has none.
std::optional<BestValue> best_of_run(const std::filesystem::path& folder, const spec::Spec& spec,
                                     const Metrics& metrics);

struct RunRecord {
  std::filesystem::path folder;
  std::string label;    // the name of its folder
  spec::Loaded config;  // of config.yaml
  Standing standing;
  Metrics metrics;
  std::optional<BestValue> best;  // best_of_run()
};
// Throws Error: usage if the folder or its config.yaml is missing or invalid, data for other damaged files.
RunRecord read_run(const std::filesystem::path& folder);

}  // namespace pmaptrain::report
