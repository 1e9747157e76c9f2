#include "core/sweep/report_table.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/json.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::sweep {
namespace {

using report::Json;

// The names of choices that set keys together, by their values: the value of the first key by which all of them differ.
// Empty where no key tells them apart, and for values of one key.
std::map<std::string, std::string> names_of(const std::set<std::string>& values) {
  std::vector<Json> choices;
  for (const std::string& value : values) {
    choices.push_back(value.starts_with('{') ? try_parse_json(value) : Json());
    if (!choices.back().is_object() || choices.back().size() < 2) return {};
  }
  if (choices.empty()) return {};
  for (const auto& entry : choices.front().items()) {
    std::map<std::string, std::string> names;
    std::set<std::string> different;
    auto value = values.begin();
    for (const Json& choice : choices) {
      if (!choice.contains(entry.key())) break;
      const Json& of_key = choice[entry.key()];
      names[*value++] = *different.insert(value_text(of_key, all_digits)).first;
    }
    if (different.size() == values.size()) return names;
  }
  return {};
}

}  // namespace

report::SweepTable report_table(const Results& results, const std::filesystem::path& folder) {
  report::SweepTable table;
  const std::filesystem::path path = folder.has_filename() ? folder : folder.parent_path();
  table.name = path.filename().string();
  table.folder = folder;
  table.metric = results.metric;
  table.larger_is_better = results.mode == spec::Mode::max;
  table.logarithmic = results.logarithmic;
  if (!results.is_ended) {
    table.unfinished = {progress_text(results), resume_command(folder), !results.is_left};
  }
  // A rung's score of a trial is over its replicates.
  std::map<std::int64_t, std::map<std::int64_t, std::pair<std::int64_t, std::vector<std::optional<double>>>>> rungs;
  for (const RungRow& row : results.rungs) {
    auto& [steps, values] = rungs[row.number][row.rung];
    steps = row.steps;
    values.push_back(row.value);
  }
  std::vector<std::map<std::string, std::string>> names, texts;  // by parameter
  for (std::size_t i = 0; i < results.parameters.size(); ++i) {
    std::set<std::string> values;
    for (const TrialResult& trial : results.trials) {
      if (!trial.values[i].empty()) values.insert(trial.values[i]);
    }
    texts.push_back(coupled_texts(values, all_digits));
    texts.back().emplace("", "");  // of a trial without the parameter
    names.push_back(names_of(values));
    std::vector<std::string> meanings;
    for (const auto& [value, name] : names.back()) {
      if (const std::string& text = texts.back().at(value); text != name)
        meanings.push_back(fmt::format("{} is {}", name, text));
    }
    if (!meanings.empty()) table.meanings.push_back(results.parameters[i] + ": " + join(meanings, "; "));
  }
  for (const TrialResult& trial : results.trials) {
    report::SweepTrial shown;
    shown.number = trial.score.number;
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      const auto name = names[i].find(trial.values[i]);
      shown.parameters.emplace_back(results.parameters[i],
                                    name != names[i].end() ? name->second : texts[i].at(trial.values[i]));
    }
    shown.value = trial.score.value;
    shown.so_far = trial.so_far;
    shown.steps = steps_of(trial);
    shown.status = to_string(trial.status);
    shown.status_text = status_text(results, trial);
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
    if (runs.size() == most || !trial.score.value || trial.runs.front().run_folder.empty()) continue;
    const std::filesystem::path run = folder / trial.runs.front().run_folder;
    std::error_code error;
    if (std::filesystem::exists(run / "config.yaml", error)) runs.push_back(run);
  }
  return runs;
}

}  // namespace pmaptrain::sweep
