// What differs between runs: their configs, their data, their results.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/report/runs/run_record.h"

namespace pmaptrain::report {

// A row of a comparison.
struct Difference {
  std::string what;                 // "optimizer.learning_rate", "test accuracy"
  std::vector<std::string> values;  // one for each run: a number or a text, as YAML; empty: the run has none
  friend bool operator==(const Difference&, const Difference&) = default;
};

// The keys whose resolved values are not the same in all configs, but for `name`. Where some configs differ in a key
// and others in keys below it, only the upper key is a row.
std::vector<Difference> config_differences(std::span<const spec::Loaded> configs);

// What checkpoints say of the data on which runs were trained: the number of examples, their fields, classes, columns,
// statistics, rows that were left out.
struct DataFacts {
  std::vector<std::pair<std::string, std::string>> facts;  // "training examples", "54000"
  std::string problem;                                     // why there are none; empty: there are
};
DataFacts data_facts(const RunRecord& run);

// The facts of a run's end: status, steps, time, measures by split; of an ensemble the medians over the members.
std::vector<std::pair<std::string, std::string>> result_facts(const RunRecord& run);

// The rows of several lists of facts, in the order of the lists. `all` keeps those that are equal.
std::vector<Difference> rows_of(std::span<const std::vector<std::pair<std::string, std::string>>> facts,
                                bool all = false);

struct RunDifferences {
  std::vector<Difference> config, data, result;
  std::vector<std::string> notes;  // what could not be compared
  bool has_data = false;           // whether the data was compared
};
RunDifferences compare_runs(std::span<const RunRecord> runs);

}  // namespace pmaptrain::report
