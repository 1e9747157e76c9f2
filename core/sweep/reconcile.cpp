#include "core/sweep/reconcile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/json.h"
#include "core/spec/compare.h"
#include "core/sweep/data_files.h"

namespace pmaptrain::sweep {
namespace {

// Keys that change no bit of a trial.
bool changes_nothing(std::string_view key) {
  constexpr std::string_view free[] = {"name",
                                       "mesh.workers",
                                       "mesh.gpu_memory",
                                       "mesh.timeout",
                                       "train.log_every",
                                       "train.checkpoint.every",
                                       "train.checkpoint.keep",
                                       "train.tensorboard",
                                       "train.verify_replicas"};
  return std::any_of(std::begin(free), std::end(free),
                     [key](std::string_view one) { return spec::is_at_or_below(key, one); });
}

constexpr const char* begin_anew = "--overwrite begins anew, and --dir DIR keeps both";
constexpr const char* what_may_change =
    "--resume takes more trials of a random search, or a longer choice of a grid; --overwrite begins anew, and --dir "
    "DIR keeps both";

// The parameters of a sweep as its store has them: in their order, with their values as the file writes them.
report::Json parameters_of(const spec::Sweep& sweep) {
  report::Json list = report::Json::array();
  for (std::size_t i = 0; i < sweep.spec().parameters.size(); ++i) {
    const spec::SweepParameter& one = sweep.spec().parameters[i];
    list.push_back({{"name", one.name}, {"space", sweep.space_text(i)}, {"values", one.values}});
  }
  return list;
}

// The trials and keys that may not have changed.
class Comparison {
 public:
  Comparison(const spec::Sweep& sweep, const SweepPlan& plan, const Store& store)
      : sweep_(sweep), plan_(plan), store_(store) {}

  void identity() {
    for (const auto& [name, now] : identity_of(sweep_, plan_)) {
      const std::string before = store_.text(name);
      if (before != now)
        add(sweep_.error_at(name, fmt::format("the sweep's {} is {}, and was {}", name, now, before), begin_anew));
    }
  }

  // Trials that the file no longer has. What made them others is told, once for each edit; else which they are.
  void gone(const std::vector<Row>& stored) {
    std::set<std::int64_t> planned, numbers;
    for (const PlannedTrial& trial : plan_.trials) planned.insert(trial.number);
    const Row* first = nullptr;
    std::int64_t more = 0;
    for (const Row& row : stored) {
      if (!numbers.insert(row.number).second || planned.contains(row.number)) continue;
      if (first == nullptr) {
        first = &row;
      } else {
        ++more;
      }
    }
    if (first == nullptr) return;
    parameters();
    if (sweep_.spec().search != spec::Search::grid) {
      const std::string seed = std::to_string(sweep_.spec().seed), seed_before = store_.text("seed");
      if (!seed_before.empty() && seed != seed_before) edited("seed", seed, seed_before);
      if (plan_.trials.size() < numbers.size()) {
        edited("trials", std::to_string(plan_.trials.size()), std::to_string(numbers.size()));
      }
    }
    if (!errors_.empty()) return;
    add(sweep_.error_at("parameters",
                        fmt::format("trial {} {}{} in the sweep's folder, and not in this file", first->number,
                                    first->parameters, more == 0 ? " is" : fmt::format(" and {} more are", more)),
                        what_may_change));
  }

  void longer(const std::vector<Row>& stored) {
    if (sweep_.spec().search != spec::Search::successive_halving) return;
    std::set<std::int64_t> numbers;
    for (const Row& row : stored) numbers.insert(row.number);
    if (std::ssize(numbers) >= std::ssize(plan_.trials)) return;
    add(sweep_.error_at("trials",
                        fmt::format("successive_halving has {}, and was begun with {}",
                                    counted(std::ssize(plan_.trials), "trial"), numbers.size()),
                        begin_anew));
  }

  // The same trial, with the config of this file.
  void configs(const Row& before, const Row& now, const spec::Loaded& loaded) {
    for (const spec::ChangedKey& key : spec::changed_keys(before.config, "the sweep's store", loaded)) {
      if (changes_nothing(key.path)) continue;
      // One edit of the base is in all trials.
      if (!keys_.insert(key.path).second) continue;
      Diagnostic diagnostic{
          key.kind,
          key.place,
          fmt::format("{} is {}, and was {} in trial {}", key.path, shown(key.after), shown(key.before), now.number),
          begin_anew,
          {}};
      add(std::move(diagnostic));
    }
  }

  void throw_any() {
    if (!errors_.empty()) throw Error(ExitStatus::usage, std::move(errors_));
  }

 private:
  static std::string shown(const std::string& value) { return value.empty() ? "not there" : value; }

  void edited(const std::string& key, const std::string& now, const std::string& before) {
    add(sweep_.error_at(key, fmt::format("{} is {}, and was {}", key, now, before), what_may_change));
  }

  // The parameters that are others than those of the store.
  void parameters() {
    const report::Json all = try_parse_json(store_.text("parameters"));
    if (!all.is_array()) return;  // of an earlier version
    std::map<std::string, report::Json> before;
    for (const report::Json& one : all) before.emplace(one.at("name").get<std::string>(), one);
    for (std::size_t i = 0; i < sweep_.spec().parameters.size(); ++i) {
      const spec::SweepParameter& now = sweep_.spec().parameters[i];
      const std::string text = sweep_.space_text(i);
      const auto at = before.find(now.name);
      if (at == before.end()) {
        add(sweep_.error_at(i, fmt::format("{} is {}, and was no parameter", now.name, text), what_may_change));
        continue;
      }
      const auto was = at->second.at("space").get<std::string>();
      if (text != was && !is_longer(now, at->second.at("values"))) {
        add(sweep_.error_at(i, fmt::format("{} is {}, and was {}", now.name, text, was), what_may_change));
      }
      before.erase(at);
    }
    for (const auto& [name, one] : before) {
      add(sweep_.error_at("parameters",
                          fmt::format("{} is no parameter, and was {}", name, one.at("space").get<std::string>()),
                          what_may_change));
    }
  }

  // Whether a grid has all of its earlier values and more.
  bool is_longer(const spec::SweepParameter& now, const report::Json& before) const {
    if (sweep_.spec().search != spec::Search::grid || before.empty()) return false;
    return std::all_of(before.begin(), before.end(), [&](const report::Json& value) {
      return std::find(now.values.begin(), now.values.end(), value.get<std::string>()) != now.values.end();
    });
  }

  void add(Diagnostic diagnostic) {
    if (errors_.size() < 20) errors_.push_back(std::move(diagnostic));
  }

  const spec::Sweep& sweep_;
  const SweepPlan& plan_;
  const Store& store_;
  std::set<std::string> keys_;
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<std::pair<std::string, std::string>> identity_of(const spec::Sweep& sweep, const SweepPlan& plan) {
  const spec::SweepSpec& spec = sweep.spec();
  std::string search = spec::to_string(spec.search);
  if (spec.search == spec::Search::successive_halving) {
    std::vector<std::string> rungs;
    for (const std::int64_t rung : plan.programs.front().rungs) rungs.push_back(std::to_string(rung));
    search += fmt::format(" by a factor of {} at steps {}", spec.factor, join(rungs, ", "));
  }
  return {{"search", search},
          {"replicates", std::to_string(spec.replicates)},
          {"metric", spec.metric},
          {"mode", spec::to_string(spec.mode)},
          {"value", spec.by_best ? "best" : "last"}};
}

void record_space(const spec::Sweep& sweep, Store& store) {
  store.set_text("parameters", json_text(parameters_of(sweep)));
  store.set_text("seed", std::to_string(sweep.spec().seed));
}

std::vector<Row> reconcile(const spec::Sweep& sweep, const SweepPlan& plan, const Store& store,
                           const std::vector<DataFile>& data) {
  const std::vector<Row> stored = store.rows();
  std::map<std::pair<std::int64_t, std::int64_t>, const Row*> before;
  for (const Row& row : stored) before.emplace(std::pair(row.number, row.replicate), &row);
  Comparison comparison(sweep, plan, store);
  comparison.identity();
  comparison.gone(stored);
  comparison.longer(stored);
  std::map<std::int64_t, const PlannedTrial*> trials;
  for (const PlannedTrial& trial : plan.trials) trials.emplace(trial.number, &trial);
  std::vector<Row> rows;
  for (const Row& now : plan.rows) {
    const auto at = before.find({now.number, now.replicate});
    if (at == before.end()) {
      rows.push_back(now);
      continue;
    }
    Row row = *at->second;
    if (row.config != now.config) {
      comparison.configs(row, now,
                         sweep.config(trials.at(now.number)->values, now.replicate,
                                      sweep.spec().name + "-" + trial_name(now.number, now.replicate)));
      if (row.steps == 0 && row.status != Status::done) row.config = now.config;  // it was trained with the other one
    }
    if (row.status == Status::running || row.status == Status::stopped) row.status = Status::waiting;
    // A sweep that is killed may have seen its runs die first.
    if (row.status == Status::waiting) row.attempts = 0;
    rows.push_back(std::move(row));
  }
  comparison.throw_any();
  if (const std::vector<std::string> changed = changed_files(store.data_files(), data); !changed.empty()) {
    fail_data(fmt::format("the sweep's data has changed: {}", join(changed, ", ")),
              std::string("values of trials on different data do not compare; restore the files, or ") + begin_anew);
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::pair(a.number, a.replicate) < std::pair(b.number, b.replicate);
  });
  return rows;
}

}  // namespace pmaptrain::sweep
