#include "core/report/runs/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/run/checkpoint.h"
#include "core/run/records/shown_measures.h"
#include "core/run/records/spread.h"
#include "core/spec/compare.h"

namespace pmaptrain::report {
namespace {

using Facts = std::vector<std::pair<std::string, std::string>>;

// "u8[28,28,1]"
std::string field_text(const data::Field& field) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : field.shape) sizes.push_back(std::to_string(size));
  return fmt::format("{}[{}]", to_string(field.dtype), join(sizes, ","));
}

std::string numbers_text(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  texts.reserve(numbers.size());
  for (const double number : numbers) texts.push_back(exact(number));
  return "[" + join(texts, ", ") + "]";
}

void add_statistics(Facts& facts, const std::string& of, const std::optional<data::Encoding::Statistics>& statistics) {
  if (!statistics) return;
  facts.emplace_back("mean of " + of, numbers_text(statistics->mean));
  facts.emplace_back("standard deviation of " + of, numbers_text(statistics->std));
}

// A member's measure, or the median over the members, under the checkpoint that commands use by default and under the
// last parameters.
void add_measures(Facts& facts, const run::Ended& ended) {
  std::vector<std::pair<std::string, std::vector<run::MeasureOfMembers>>> splits;
  for (std::size_t m = 0; m < ended.members.size(); ++m) {
    for (const run::ShownMeasures& shown : run::shown_measures(ended, ended.members[m])) {
      // A run that has other last parameters has rows of its own for these; the others are of the checkpoint that
      // commands use by default.
      const std::string name = shown.checkpoint == "last" ? shown.name : shown_name(shown.split);
      auto split = std::find_if(splits.begin(), splits.end(), [&](const auto& one) { return one.first == name; });
      if (split == splits.end()) split = splits.insert(splits.end(), {name, {}});
      run::collect(split->second, static_cast<std::int64_t>(m), *shown.measures);
    }
  }
  for (const auto& [split, measures] : splits) {
    for (const auto& [name, median] : run::medians_of(measures)) {
      facts.emplace_back(fmt::format("{} {}", split, name), exact(median));
    }
  }
}

}  // namespace

std::vector<Difference> config_differences(std::span<const spec::Loaded> configs) {
  std::vector<std::string> order;
  std::vector<std::map<std::string, std::string>> changed(configs.size());
  std::map<std::string, std::string> first;
  for (std::size_t i = 1; i < configs.size(); ++i) {
    for (spec::ChangedKey& key : spec::changed_keys(configs.front().resolved, "config.yaml", configs[i])) {
      if (key.path == "name") continue;
      if (first.try_emplace(key.path, key.before).second) order.push_back(key.path);
      changed[i].emplace(key.path, key.after);
    }
  }
  std::vector<Difference> rows;
  for (const std::string& path : order) {
    const bool is_below = std::any_of(order.begin(), order.end(), [&](const std::string& other) {
      return other != path && spec::is_at_or_below(path, other);
    });
    if (is_below) continue;
    Difference row{path, {first[path]}};
    for (std::size_t i = 1; i < configs.size(); ++i) {
      if (const auto found = changed[i].find(path); found != changed[i].end()) {
        row.values.push_back(found->second);
        continue;
      }
      std::vector<std::string> below;
      for (const auto& [key, value] : changed[i]) {
        if (!spec::is_at_or_below(key, path)) continue;
        below.push_back(fmt::format("{}: {}", key.substr(path.size() + 1), value.empty() ? "none" : value));
      }
      row.values.push_back(below.empty() ? first[path] : "as the first, but " + join(below, ", "));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

DataFacts data_facts(const RunRecord& run) {
  DataFacts data;
  try {
    const run::RunState state = run::load_run_state(run::find_checkpoint(run.folder, "last"));
    const data::Encoding& encoding = state.encoding;
    data.facts.emplace_back("training examples", std::to_string(state.train_examples));
    data.facts.emplace_back("inputs", field_text(state.input));
    data.facts.emplace_back("targets", field_text(state.target));
    if (!encoding.classes.empty()) data.facts.emplace_back("classes", "[" + join(encoding.classes, ", ") + "]");
    if (!encoding.columns.empty()) {
      std::vector<std::string> names;
      for (const data::Encoding::Column& column : encoding.columns) {
        names.push_back(column.name);
        if (!column.categories.empty()) names.back() += ": [" + join(column.categories, ", ") + "]";
      }
      data.facts.emplace_back("columns", "[" + join(names, ", ") + "]");
    }
    add_statistics(data.facts, "inputs", encoding.statistics);
    add_statistics(data.facts, "targets", encoding.targets);
    if (!encoding.class_weights.empty()) {
      data.facts.emplace_back("class weights", numbers_text(encoding.class_weights));
    }
    if (!encoding.skipped.empty()) {
      data.facts.emplace_back("left out, because they cannot be read", std::to_string(encoding.skipped.size()));
    }
  } catch (const Error& error) {
    data.problem = error.diagnostics().front().message;
  }
  return data;
}

Facts result_facts(const RunRecord& run) {
  const Standing& standing = run.standing;
  Facts facts{{"status", standing.status}};
  if (standing.ended) {
    const run::Ended& ended = *standing.ended;
    facts.emplace_back("reason", ended.reason);
    facts.emplace_back("steps", std::to_string(ended.steps));
    facts.emplace_back("epochs", std::to_string(ended.epochs));
    if (ended.is_ensemble) facts.emplace_back("members", std::to_string(ended.members.size()));
    facts.emplace_back("parameters", std::to_string(ended.parameters));
    if (ended.steps_skipped() > 0) facts.emplace_back("steps skipped", std::to_string(ended.steps_skipped()));
    facts.emplace_back("seconds", exact(ended.seconds));
    facts.emplace_back("version", standing.version);
    add_measures(facts, ended);
  } else {
    std::int64_t steps = 0;
    for (const Series& series : run.metrics.series) steps = std::max(steps, series.steps.back());
    facts.emplace_back("steps", std::to_string(steps));
  }
  if (const auto& best = run.best) {
    const std::string of = fmt::format("best {} {}", best->split, best->measure);
    facts.emplace_back(of, exact(best->value));
    facts.emplace_back("step of the best", std::to_string(best->step));
  }
  for (const run::Changed& change : run.metrics.changes) {
    facts.emplace_back(fmt::format("{} from step {} on", change.key, change.step + 1), change.value);
  }
  return facts;
}

std::vector<Difference> rows_of(std::span<const Facts> facts, bool all) {
  std::vector<Difference> rows;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    for (const auto& fact : facts[i]) {
      auto row = std::find_if(rows.begin(), rows.end(), [&](const Difference& one) { return one.what == fact.first; });
      if (row == rows.end()) {
        rows.push_back({fact.first, std::vector<std::string>(facts.size())});
        row = std::prev(rows.end());
      }
      row->values[i] = fact.second;
    }
  }
  if (all) return rows;
  std::erase_if(rows, [](const Difference& row) {
    return std::all_of(row.values.begin(), row.values.end(),
                       [&](const std::string& value) { return value == row.values.front(); });
  });
  return rows;
}

RunDifferences compare_runs(std::span<const RunRecord> runs) {
  RunDifferences found;
  std::vector<spec::Loaded> configs;
  std::vector<Facts> data, results;
  for (const RunRecord& run : runs) {
    configs.push_back(run.config);
    results.push_back(result_facts(run));
    DataFacts facts = data_facts(run);
    if (!facts.problem.empty()) found.notes.push_back("the data is not compared: " + facts.problem);
    data.push_back(std::move(facts.facts));
  }
  found.has_data = found.notes.empty();
  found.config = config_differences(configs);
  if (found.has_data) found.data = rows_of(data);
  found.result = rows_of(results);
  return found;
}

}  // namespace pmaptrain::report
