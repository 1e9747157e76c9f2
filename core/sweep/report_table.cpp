#include "core/sweep/report_table.h"

#include <map>
#include <utility>

namespace pmaptrain::sweep {

report::SweepTable report_table(const Results& results, const std::filesystem::path& folder) {
  report::SweepTable table;
  const std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  table.name = path.filename().string();
  table.metric = results.metric;
  table.larger_is_better = results.mode == spec::Mode::max;
  table.logarithmic = results.logarithmic;
  // A rung's score of a trial is over its replicates.
  std::map<std::int64_t, std::map<std::int64_t, std::pair<std::int64_t, std::vector<std::optional<double>>>>> rungs;
  for (const RungRow& row : results.rungs) {
    auto& [steps, values] = rungs[row.number][row.rung];
    steps = row.steps;
    values.push_back(row.value);
  }
  for (const TrialResult& trial : results.trials) {
    report::SweepTrial shown;
    shown.number = trial.score.number;
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      shown.parameters.emplace_back(results.parameters[i], coupled_text(trial.values[i]));
    }
    shown.value = trial.score.value;
    shown.status = to_string(trial.status);
    shown.run_folder = trial.runs.front().run_folder;
    for (const auto& [rung, of_rung] : rungs[trial.score.number]) {
      shown.rungs.emplace_back(of_rung.first, score_of(shown.number, of_rung.second).value);
    }
    table.trials.push_back(std::move(shown));
  }
  return table;
}

std::string trial_name(const std::string& folder) {
  const std::size_t dash = folder.find("-r"), digit = folder.find_first_not_of('0');
  const std::string number = folder.substr(0, dash);
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return folder;
  const std::string shown = "trial " + (digit < number.size() ? number.substr(digit) : "0");
  return dash == std::string::npos ? shown : shown + ", replicate " + folder.substr(dash + 2);
}

std::vector<std::filesystem::path> best_runs(const Results& results, const std::filesystem::path& folder,
                                             std::size_t most) {
  std::vector<std::filesystem::path> runs;
  for (const TrialResult& trial : results.trials) {
    const std::filesystem::path run = folder / trial.runs.front().run_folder;
    std::error_code error;
    if (runs.size() < most && trial.score.value && std::filesystem::exists(run / "config.yaml", error))
      runs.push_back(run);
  }
  return runs;
}

}  // namespace pmaptrain::sweep
