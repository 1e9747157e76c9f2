// A sweep as a report shows it. What reads the store of a sweep fills this in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmaptrain::report {

struct SweepTrial {
  std::int64_t number = 0;
  std::vector<std::pair<std::string, std::string>> parameters;        // key, value as YAML
  std::optional<double> value;                                        // of the metric; none if the trial has none (yet)
  std::string status;                                                 // waiting, running, done, failed or stopped
  std::string run_folder;                                             // empty: there is none (yet)
  std::vector<std::pair<std::int64_t, std::optional<double>>> rungs;  // of halving: its step, and the value there
  std::string status_text = {};  // the status with its reason: "done: a guard stopped it after 1 step"; may be empty
  std::optional<double> so_far = {};  // of a trial that has not ended, without a value: the best evaluation
  std::int64_t steps = 0;
};

// A sweep that has not ended.
struct Unfinished {
  std::string progress;  // "3 of 12 trials done"
  std::string command;   // with which it goes on
  bool runs = false;     // a process runs it
};

struct SweepTable {
  std::string name, metric;
  std::filesystem::path folder = {};  // of the sweep
  bool larger_is_better = false;
  std::vector<SweepTrial> trials;
  std::vector<std::string> logarithmic = {};  // keys that are drawn on logarithmic axes
  std::vector<std::string> meanings = {};     // "width: 64 is features 64, batch_size 16", of values that have a name
  std::optional<Unfinished> unfinished = {};
};

}  // namespace pmaptrain::report
