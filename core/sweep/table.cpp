#include "core/sweep/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/short_keys.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/run/records/lines.h"
#include "core/sweep/ensembles.h"
#include "core/sweep/folder.h"
#include "core/sweep/live.h"
#include "core/sweep/result.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::sweep {
namespace {

using report::Json;

// The status of a trial by those of its runs: one that is not done says more.
Status status_of(const std::vector<Row>& runs) {
  for (const Status one : {Status::running, Status::waiting, Status::stopped, Status::failed}) {
    if (std::any_of(runs.begin(), runs.end(), [one](const Row& row) { return row.status == one; })) return one;
  }
  return Status::done;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : json_text(value); }

// A value as a person reads it; exact() is for programs.
std::string shown(const std::optional<double>& value) { return value ? fmt::format("{:.6g}", *value) : "-"; }

// The values of the test split of a run that ended, under the checkpoint that commands use by default; null if it has
// none.
const run::Measures* test_of(const std::optional<run::Ended>& ended) {
  if (!ended || ended->members.empty()) return nullptr;
  const run::MemberEnded& member = ended->members.front();
  for (const auto& [split, measures] : member.selected ? member.selected->measures : member.final_measures) {
    if (split == "test") return &measures;
  }
  return nullptr;
}

double seconds_of(const TrialResult& trial) {
  double seconds = 0;
  std::set<std::int64_t> ensembles;  // replicates that were trained together have one time
  for (const Row& row : trial.runs) {
    if (row.ensemble < 0 || ensembles.insert(row.ensemble).second) seconds += row.seconds;
  }
  return seconds;
}

std::optional<run::Ended> summary_of(const std::filesystem::path& sweep, const Row& run) {
  return run.run_folder.empty() ? std::nullopt : read_summary(sweep / run.run_folder);
}

std::string error_of(const TrialResult& trial) {
  for (const Row& row : trial.runs) {
    if (!row.error.empty()) return row.error;
  }
  return "";
}

// The same in a few words, for a table; the whole of it is in JSON and CSV.
std::string reason_of(const TrialResult& trial, int most_columns) {
  const auto guarded = std::find_if(trial.runs.begin(), trial.runs.end(), [](const Row& row) {
    return row.exit_status == static_cast<int>(ExitStatus::guard);
  });
  if (guarded != trial.runs.end()) return fmt::format("a guard stopped it after {}", counted(guarded->steps, "step"));
  return shown_name(error_of(trial), most_columns);
}

Json number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json trial_json(const TrialResult& trial) {
  Json document;
  document["number"] = trial.score.number;
  document["status"] = to_string(trial.status);
  document["parameters"] = try_parse_json(trial.runs.front().parameters);
  document["value"] = number(trial.score.value);
  document["spread"] = number(trial.score.spread);
  document["so_far"] = number(trial.so_far);
  document["steps"] = steps_of(trial);
  document["seconds"] = seconds_of(trial);
  document["ensemble_size"] = trial.together;
  document["runs"] = Json::array();
  for (const Row& row : trial.runs) {
    Json run;
    run["replicate"] = row.replicate;
    run["status"] = to_string(row.status);
    run["value"] = number(row.value);
    run["steps"] = row.steps;
    run["seconds"] = row.seconds;
    run["run_folder"] = row.run_folder.empty() ? Json(nullptr) : Json(row.run_folder);
    run["exit_status"] = row.exit_status ? Json(*row.exit_status) : Json(nullptr);
    run["error"] = row.error.empty() ? Json(nullptr) : Json(row.error);
    document["runs"].push_back(std::move(run));
  }
  return document;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// The number of rungs of "successive_halving by a factor of 3 at steps 9, 27"; 0 of other searches.
std::int64_t rungs_of_search(const std::string& search) {
  if (!search.starts_with("successive_halving")) return 0;
  std::int64_t rungs = 1;
  for (std::size_t at = search.find(", "); at != std::string::npos; at = search.find(", ", at + 1)) ++rungs;
  return rungs;
}

// What runs that have not ended have logged, which the store does not know yet.
class Logs {
 public:
  Logs(const std::filesystem::path& sweep, const Results& results) : sweep_(sweep), results_(results) {}

  // Brings the row up to its run folder. Returns the best evaluation.
  std::optional<double> read(Row& row) {
    const bool together = row.ensemble >= 0 && !row.left;
    const std::string folder = together ? ensemble_folder(row.ensemble) : row.run_folder;
    const auto [at, is_new] = logs_.try_emplace(folder, sweep_ / folder, results_.metric);
    LiveMetrics& log = at->second;
    if (is_new) log.update(std::numeric_limits<std::int64_t>::max());
    row.steps = std::max(row.steps, log.step());
    row.seconds = std::max(row.seconds, log.seconds());
    const LiveMetrics::Member member = log.member(together ? row.member : 0);
    if (results_.value == "last") return member.value;
    return results_.mode == spec::Mode::min ? member.least : member.largest;
  }

 private:
  const std::filesystem::path& sweep_;
  const Results& results_;
  std::map<std::string, LiveMetrics> logs_;
};

// How far a table goes to fit into a terminal.
struct Narrowing {
  bool short_names, has_steps, has_time;
  int most_value, most_reason;  // columns of a value of a parameter (0: any), and of the reason of a status
};

constexpr int whole_reason = 60, guard_reason = 40;
constexpr Narrowing narrowings[] = {{false, true, true, 0, whole_reason},  {true, true, true, 0, whole_reason},
                                    {true, true, true, 24, guard_reason},  {true, true, false, 24, guard_reason},
                                    {true, true, false, 14, guard_reason}, {true, true, false, 14, 0},
                                    {true, false, false, 14, 0},           {true, false, false, 8, 0}};

}  // namespace

Results read_results(const std::filesystem::path& sweep) {
  check_is_sweep(sweep);
  const Store store(sweep, Store::Access::read);
  Results results;
  results.metric = store.text("metric");
  results.mode = store.text("mode") == "max" ? spec::Mode::max : spec::Mode::min;
  results.value = store.text("value");
  results.search = store.text("search");
  std::istringstream logarithmic(store.text("logarithmic"));
  for (std::string name; std::getline(logarithmic, name);) results.logarithmic.push_back(name);
  results.rungs = store.rungs();
  std::map<std::int64_t, TrialResult> trials;
  // A sweep that begins or ends while this reads was not killed.
  const bool ran = SweepFolder::is_taken(sweep);
  std::vector<Row> rows = store.rows();
  const bool runs = ran || SweepFolder::is_taken(sweep);
  results.is_ended = true;
  Logs logs(sweep, results);
  std::map<std::int64_t, std::vector<std::optional<double>>> so_far;
  for (const Row& row : rows) {
    std::int64_t& together = trials[row.number].together;
    together = std::max(together, ensemble_size(row, rows));
  }
  for (Row& row : rows) {
    const bool goes_on = row.status == Status::running || row.status == Status::stopped;
    so_far[row.number].push_back(goes_on ? logs.read(row) : row.value);
    results.is_ended = results.is_ended && (row.status == Status::done || row.status == Status::failed);
    if (!runs && row.status == Status::running) {
      row.status = Status::stopped;
      row.error = "killed";
    }
    if (!runs && (row.status == Status::stopped || row.status == Status::waiting)) results.is_left = true;
    std::error_code error;
    if (!std::filesystem::exists(sweep / row.run_folder, error)) row.run_folder.clear();
    TrialResult& trial = trials[row.number];
    trial.rung = row.rung;
    trial.runs.push_back(std::move(row));
  }
  for (auto& [number, trial] : trials) {
    std::vector<std::optional<double>> values;
    for (const Row& row : trial.runs) values.push_back(row.value);
    trial.score = score_of(number, values);
    trial.status = status_of(trial.runs);
    const bool has_ended = trial.status == Status::done || trial.status == Status::failed;
    if (!trial.score.value && !has_ended) trial.so_far = score_of(number, so_far[number]).value;
    const Json parameters = try_parse_json(trial.runs.front().parameters);
    if (!parameters.is_object()) fail_data(fmt::format("the sweep's store in '{}' is damaged", sweep.string()));
    if (results.parameters.empty()) {
      for (const auto& [name, value] : parameters.items()) results.parameters.push_back(name);
    }
    for (const std::string& name : results.parameters) {
      trial.values.push_back(parameters.contains(name) ? text_of(parameters[name]) : "");
    }
    results.trials.push_back(std::move(trial));
  }
  const bool least = results.mode == spec::Mode::min;
  std::sort(results.trials.begin(), results.trials.end(), [least](const TrialResult& a, const TrialResult& b) {
    const auto& x = a.score.value ? a.score.value : a.so_far;
    const auto& y = b.score.value ? b.score.value : b.so_far;
    if (a.score.value.has_value() != b.score.value.has_value()) return a.score.value.has_value();
    if (x.has_value() != y.has_value()) return x.has_value();
    if (x && a.rung != b.rung) return a.rung > b.rung;
    if (x && *x < *y) return least;
    if (x && *x > *y) return !least;
    return a.score.number < b.score.number;
  });
  return results;
}

std::string status_text(const Results& results, const TrialResult& trial, int most_reason) {
  const bool halves = !results.rungs.empty() && results.rungs.back().rung > 0;
  std::string status = to_string(trial.status);
  if (halves && trial.status == Status::done) status += fmt::format(", rung {}", trial.rung + 1);
  const std::string reason = most_reason > 0 ? reason_of(trial, most_reason) : "";
  return reason.empty() || trial.status == Status::running ? status : status + ": " + reason;
}

std::string progress_text(const Results& results) {
  std::int64_t all = 0, done = 0, rung = 0;
  const auto has_ended = [](const TrialResult& trial) {
    return trial.status == Status::done || trial.status == Status::failed;
  };
  for (const TrialResult& trial : results.trials) rung = std::max(rung, trial.rung);
  for (const TrialResult& trial : results.trials) {
    if (!has_ended(trial)) rung = std::min(rung, trial.rung);
  }
  for (const TrialResult& trial : results.trials) {
    if (trial.rung < rung) continue;
    ++all;
    done += has_ended(trial) ? 1 : 0;
  }
  const std::int64_t rungs = rungs_of_search(results.search);
  const std::string of_rung = rungs > 0 ? fmt::format("rung {} of {}: ", rung + 1, rungs) : "";
  return fmt::format("{}{} of {} done", of_rung, with_commas(done), counted(all, "trial"));
}

namespace {

// The table of the first `count` trials.
std::vector<std::vector<std::string>> table_rows(const Results& results, std::size_t count, const Narrowing& narrow) {
  const bool spreads = std::any_of(results.trials.begin(), results.trials.end(),
                                   [](const TrialResult& trial) { return trial.score.spread.has_value(); });
  std::vector<std::map<std::string, std::string>> texts;  // by parameter
  for (std::size_t i = 0; i < results.parameters.size(); ++i) {
    std::set<std::string> values;
    for (const TrialResult& trial : results.trials) values.insert(trial.values[i]);
    texts.push_back(coupled_texts(values));
  }
  std::vector<std::string> head = {"trial", results.metric};
  if (spreads) head.emplace_back("spread");
  for (const std::string& name : narrow.short_names ? short_keys(results.parameters) : results.parameters) {
    head.push_back(narrow.most_value > 0 ? shown_name(name, narrow.most_value) : printable(name));
  }
  if (narrow.has_steps) head.emplace_back("steps");
  if (narrow.has_time) head.emplace_back("time");
  head.emplace_back("status");
  std::vector<std::vector<std::string>> rows = {head};
  for (std::size_t k = 0; k < count; ++k) {
    const TrialResult& trial = results.trials[k];
    std::vector<std::string> row = {std::to_string(trial.score.number),
                                    trial.so_far ? "(" + shown(trial.so_far) + ")" : shown(trial.score.value)};
    if (spreads) row.push_back(shown(trial.score.spread));
    for (std::size_t i = 0; i < trial.values.size(); ++i) {
      const std::string& text = texts[i].at(trial.values[i]);
      row.push_back(narrow.most_value > 0 ? shown_name(text, narrow.most_value) : text);
    }
    if (narrow.has_steps) row.push_back(with_commas(steps_of(trial)));
    if (narrow.has_time) row.push_back(run::duration(seconds_of(trial)));
    row.push_back(status_text(results, trial, narrow.most_reason));
    rows.push_back(std::move(row));
  }
  return rows;
}

// Of a table that is too wide for a terminal, names are shortened first, then values; then columns go, but for the
// status. What is left of a very narrow one is folded, with the status first.
std::string table_text(const Results& results, std::size_t count, int columns, bool& has_time) {
  std::vector<std::vector<std::string>> rows;
  const auto text = [&](int width) {
    std::vector<bool> right(rows.front().size(), true);
    right.back() = rows.front().back() != "status";
    return in_columns(rows, right, width);
  };
  for (const Narrowing& narrow : narrowings) {
    rows = table_rows(results, count, narrow);
    has_time = narrow.has_time;
    if (columns <= 0 || columns_of_table(rows) <= columns) return text(0);
  }
  for (std::vector<std::string>& row : rows) std::rotate(row.begin() + 1, row.end() - 1, row.end());
  return text(columns);
}

}  // namespace

std::string results_text(const Results& results, std::int64_t top, bool color, int columns) {
  const std::string sign = color ? "\x1b[1m" : "", end = color ? "\x1b[0m" : "";
  std::int64_t counts[5] = {};
  for (const TrialResult& trial : results.trials) ++counts[static_cast<int>(trial.status)];
  std::vector<std::string> parts;
  for (const Status one : {Status::done, Status::running, Status::waiting, Status::stopped, Status::failed}) {
    const std::int64_t count = counts[static_cast<int>(one)];
    if (count > 0) parts.push_back(fmt::format("{} {}", with_commas(count), to_string(one)));
  }
  const bool halves = rungs_of_search(results.search) > 0;
  const std::int64_t all = std::ssize(results.trials), count = top > 0 ? std::min(top, all) : all;
  std::string text =
      fmt::format("{}{}{} ({}), ordered by {}the {} {} of each run\n\n", sign, counted(all, "trial"), end,
                  join(parts, ", "), halves ? "their rungs and " : "", results.value, results.metric);
  bool has_time = false;
  text += table_text(results, static_cast<std::size_t>(count), columns, has_time);
  if (count < all) text += fmt::format("  and {} more\n", with_commas(all - count));
  const auto some = [&](auto&& has) { return std::any_of(results.trials.begin(), results.trials.end(), has); };
  std::vector<std::string> legend;
  if (some([](const TrialResult& trial) { return trial.so_far.has_value(); })) {
    legend.push_back(fmt::format("({}): the {} so far of a trial that has not ended", results.metric,
                                 results.value == "last" ? "last" : "best"));
  }
  std::int64_t together = 1;
  for (const TrialResult& trial : results.trials) together = std::max(together, trial.together);
  if (together > 1 && has_time) {
    const bool alike = !some([&](const TrialResult& trial) { return trial.together != together; });
    legend.push_back(
        fmt::format("time: of an ensemble of {}{} trials that are trained together", alike ? "" : "up to ", together));
  }
  for (const std::string& line : legend) text += "  " + line + "\n";
  return text;
}

std::string results_csv(const Results& results) {
  std::string text = "trial,replicate,status,value,steps,seconds,run_folder,exit_status,error";
  for (const std::string& name : results.parameters) text += "," + csv_field(name);
  text += "\n";
  std::vector<const TrialResult*> trials;
  for (const TrialResult& trial : results.trials) trials.push_back(&trial);
  std::sort(trials.begin(), trials.end(),
            [](const TrialResult* a, const TrialResult* b) { return a->score.number < b->score.number; });
  for (const TrialResult* const trial : trials) {
    for (const Row& row : trial->runs) {
      text += fmt::format("{},{},{},{},{},{},{},{},{}", row.number, row.replicate, to_string(row.status),
                          row.value ? exact(*row.value) : "", row.steps, exact(row.seconds), csv_field(row.run_folder),
                          row.exit_status ? std::to_string(*row.exit_status) : "", csv_field(row.error));
      for (const std::string& value : trial->values) text += "," + csv_field(value);
      text += "\n";
    }
  }
  return text;
}

std::string results_json(const Results& results, std::int64_t top) {
  Json document;
  document["metric"] = results.metric;
  document["mode"] = spec::to_string(results.mode);
  document["value"] = results.value;
  document["search"] = results.search;
  document["trials"] = Json::array();
  for (const TrialResult& trial : results.trials) {
    if (top > 0 && std::ssize(document["trials"]) == top) break;
    document["trials"].push_back(trial_json(trial));
  }
  document["rungs"] = Json::array();
  for (const RungRow& row : results.rungs) {
    document["rungs"].push_back({{"rung", row.rung},
                                 {"number", row.number},
                                 {"replicate", row.replicate},
                                 {"steps", row.steps},
                                 {"value", number(row.value)},
                                 {"advanced", row.advanced}});
  }
  return report::to_text(document);
}

std::string resume_command(const std::filesystem::path& sweep) {
  return fmt::format("pmaptrain sweep run {} --resume", shell_quoted(sweep.string()));
}

std::int64_t steps_of(const TrialResult& trial) {
  std::int64_t steps = 0;
  for (const Row& row : trial.runs) steps = std::max(steps, row.steps);
  return steps;
}

bool has_best(const Results& results) { return !results.trials.empty() && results.trials.front().score.value; }

Diagnostic no_value(const Results& results) {
  bool goes_on = false;
  std::map<std::string, std::int64_t> reasons;
  for (const TrialResult& trial : results.trials) {
    const bool ended = trial.status == Status::done || trial.status == Status::failed;
    goes_on = goes_on || !ended;
    if (const std::string reason = reason_of(trial, whole_reason); ended && !reason.empty()) ++reasons[reason];
  }
  std::string message = "no trial of this sweep has a value";
  if (goes_on) message += " yet";
  const auto most = std::max_element(reasons.begin(), reasons.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most != reasons.end()) {
    message += fmt::format("; the reason in {}: {}", counted(most->second, "trial"), most->first);
    if (const std::int64_t others = std::ssize(reasons) - 1; others > 0) {
      message += fmt::format("; {} in the others", counted(others, "other reason"));
    }
  }
  return {"result", {}, std::move(message), "pmaptrain sweep show lists the trials, each with its reason", {}};
}

const TrialResult& best_of(const Results& results) {
  if (!has_best(results)) throw Error(ExitStatus::failed, no_value(results));
  return results.trials.front();
}

std::string best_json(const Results& results, const std::filesystem::path& sweep, bool with_config) {
  const TrialResult& best = best_of(results);
  const auto ended = summary_of(sweep, best.runs.front());
  Json document = trial_json(best);
  document["metric"] = results.metric;
  document["test"] = nullptr;
  if (const run::Measures* const test = test_of(ended)) {
    document["test"] = Json::object();
    for (const auto& [measure, value] : *test) document["test"][measure] = value;
  }
  if (with_config) document["config"] = best.runs.front().config;
  return report::to_text(document);
}

std::string best_text(const Results& results, const std::filesystem::path& sweep) {
  const TrialResult& best = best_of(results);
  const Row& first = best.runs.front();
  const auto ended = summary_of(sweep, first);
  const run::Measures* const test = test_of(ended);
  std::string text = fmt::format("trial {}: {} {}", best.score.number, results.metric, shown(best.score.value));
  if (best.score.spread) {
    text += fmt::format(" (spread {} over {})", shown(best.score.spread), counted(std::ssize(best.runs), "replicate"));
  }
  text += "\n";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < best.values.size(); ++i) {
    rows.push_back({printable(results.parameters[i]), coupled_texts({best.values[i]}, all_digits).begin()->second});
  }
  text += in_columns(rows, {false, false}) + "\n";
  if (test != nullptr) {
    const bool selected = selection_split(*ended) == "test";
    text += selected ? "test, by which trials were compared (data.validation keeps examples aside for that):"
                     : "test, which selected nothing:";
    for (const auto& [measure, value] : *test) text += fmt::format(" {} {:.6g}", measure, value);
    text += "\n";
  }
  const std::string folder = shell_quoted(sweep.string());
  if (!first.run_folder.empty()) {
    text += fmt::format("run folder: {}\n", printable((sweep / first.run_folder).string()));
  } else if (first.ensemble >= 0 && !first.left) {
    text += fmt::format("run folder: when it leaves the ensemble in {}\n",
                        printable((sweep / ensemble_folder(first.ensemble)).string()));
  }
  return text + fmt::format("its config: pmaptrain sweep best {} --print-config\n", folder);
}

}  // namespace pmaptrain::sweep
