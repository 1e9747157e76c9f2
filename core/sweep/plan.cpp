#include "core/sweep/plan.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/report/parallelism.h"
#include "core/report/plan_report.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"
#include "core/spec/paths.h"
#include "core/sweep/halving.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::sweep {
namespace {

// Collects the mistakes of trials. The same mistake of several trials is told once.
class Mistakes {
 public:
  void add(const Error& error, const std::string& trial) {
    if (first_.empty()) status_ = error.status();
    for (const Diagnostic& diagnostic : error.diagnostics()) {
      // Where values of a choice make a mistake at one place, notes and help may speak of the value.
      const Place& place = diagnostic.place;
      const std::string text = fmt::format("{}:{}:{}: {}", place.file, place.line, place.column, diagnostic.message);
      const auto [at, is_new] = trials_.emplace(text, 0);
      if (++at->second > 1 || !is_new) continue;
      order_.push_back(text);
      first_.emplace(text, diagnostic);
      first_.at(text).notes.push_back("in " + trial);
    }
  }
  // More would not be read.
  bool enough() const { return order_.size() >= 20; }
  void throw_any() {
    if (order_.empty()) return;
    std::vector<Diagnostic> diagnostics;
    for (const std::string& text : order_) {
      Diagnostic& diagnostic = first_.at(text);
      if (trials_.at(text) > 1) {
        diagnostic.notes.back() += fmt::format(", and in {} more", counted(trials_.at(text) - 1, "run"));
      }
      diagnostics.push_back(std::move(diagnostic));
    }
    throw Error(status_, std::move(diagnostics));
  }

 private:
  ExitStatus status_ = ExitStatus::usage;
  std::vector<std::string> order_;
  std::map<std::string, Diagnostic> first_;
  std::map<std::string, std::int64_t> trials_;
};

// The rungs of a program's trials, in steps. Throws Error (usage) for rungs without an evaluation.
std::vector<std::int64_t> rungs_of_program(const spec::Sweep& sweep, const step::Timetable& times,
                                           const BatchPlan& batch) {
  if (sweep.spec().search != spec::Search::successive_halving) return {times.steps};
  const std::string key = "search.successive_halving.min";
  if (spec::is_time(sweep.spec().first_rung)) {
    sweep.fail(key, "the first rung is a number of steps, epochs or examples, not a time", "min: 1 epoch");
  }
  const std::int64_t first = step::to_steps(sweep.spec().first_rung, batch, "min");
  std::vector<std::int64_t> rungs = rungs_of(first, sweep.spec().factor, times.steps);
  for (const std::int64_t rung : rungs) {
    if (rung == times.steps || (times.eval_every > 0 && rung % times.eval_every == 0)) continue;
    sweep.fail(key,
               fmt::format("the rung at step {} has no evaluation: train.eval_every is {}", with_commas(rung),
                           counted(times.eval_every, "step")),
               "let min be a multiple of train.eval_every");
  }
  return rungs;
}

// `cores`: with which to compare one worker; 1: not at all.
TrialProgram program_of(const spec::Sweep& sweep, spec::Loaded loaded, int cores, std::vector<std::string>& warnings) {
  TrialProgram program;
  const setup::Setup setup = setup::make_setup(std::move(loaded));
  const setup::PlannedSource run = setup::plan_run(setup);
  const report::ValidateReport report = report::make_validate_report(setup, run);
  program.steps = setup.timetable.steps;
  program.examples_per_step = setup.batch.global;
  program.rungs = rungs_of_program(sweep, setup.timetable, setup.batch);
  program.on_gpus = report.memory.gpus > 0;
  program.memory = program.on_gpus ? report.memory.host.total() : report.memory.total();
  program.available = program.on_gpus ? report.memory.host.available : report.memory.available;
  program.sets_workers = setup.spec().mesh.workers.has_value();
  if (cores > 1 && !program.on_gpus) {
    program.speed_up = report::speed_up(run.planned->report(setup::train_entry).stages, cores);
  }
  for (const std::string& warning : report.warnings) {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(warning);
  }
  return program;
}

// Rungs are decided for all trials together.
void check_rungs(const spec::Sweep& sweep, const SweepPlan& plan) {
  for (const TrialProgram& program : plan.programs) {
    const std::size_t first = plan.programs.front().rungs.size();
    if (program.rungs.size() == first) continue;
    sweep.fail("search", fmt::format("some trials have {} rungs, and others {}", first, program.rungs.size()),
               "let train.duration, counted in epochs, be the same for all trials");
  }
}

// Trials with batches of different sizes take different numbers of steps for one number of examples, so lengths in
// steps would give some of them more examples.
void check_lengths(const spec::Sweep& sweep, const SweepPlan& plan, const spec::Spec& spec) {
  const bool differ = std::any_of(plan.programs.begin(), plan.programs.end(), [&](const TrialProgram& one) {
    return one.examples_per_step != plan.programs.front().examples_per_step;
  });
  if (!differ) return;
  const std::string said = "batches differ between trials, so a length in steps is another amount of training for each";
  if (spec.train.duration.unit == spec::Unit::steps) sweep.fail("set", said, "let train.duration be in epochs");
  if (sweep.spec().search == spec::Search::successive_halving && sweep.spec().first_rung.unit == spec::Unit::steps) {
    sweep.fail("search.successive_halving.min", said, "min: 1 epoch");
  }
}

// Refuses a run that repeats another one: it would have the same values, and cost as much.
class OneRunEach {
 public:
  explicit OneRunEach(const spec::Sweep& sweep) : sweep_(sweep) {}

  void add(const std::string& config, const PlannedTrial& trial, std::int64_t replicate) {
    // The first line has the name of the run.
    const auto [first, is_new] = runs_.emplace(config.substr(config.find('\n')), Run{trial.number, replicate});
    if (is_new) return;
    if (first->second.trial == trial.number) {
      sweep_.fail("replicates",
                  fmt::format("replicates {} and {} are the same run", first->second.replicate, replicate),
                  "give each replicate other values");
    }
    sweep_.fail(
        "parameters",
        fmt::format("trials {} and {} are the same run: their values mean the same", first->second.trial, trial.number),
        "remove one of the values");
  }

 private:
  struct Run {
    std::int64_t trial = 0, replicate = 0;
  };
  const spec::Sweep& sweep_;
  std::map<std::string, Run> runs_;
};

}  // namespace

std::string trial_name(std::int64_t number, std::int64_t replicate) {
  return replicate == 0 ? fmt::format("{:04}", number) : fmt::format("{:04}-r{}", number, replicate);
}

std::string trial_text(const spec::Sweep& sweep, const PlannedTrial& trial) {
  std::vector<std::string> names, parts;
  for (const spec::SweepParameter& parameter : sweep.spec().parameters) names.push_back(parameter.name);
  const std::vector<std::string> values = parameter_values(sweep.json(trial.values), names, all_digits);
  for (std::size_t i = 0; i < names.size(); ++i) parts.push_back(names[i] + "=" + values[i]);
  return fmt::format("trial {} ({})", trial.number, join(parts, ", "));
}

std::string in_any_order(const std::string& parameters) {
  std::map<std::string, std::string> sorted;
  const auto document = parse_json(parameters);
  for (const auto& [name, value] : document.items()) sorted.emplace(json_string(name), json_text(value));
  std::string text;
  for (const auto& [name, value] : sorted) text.append(name).append(":").append(value).append("\n");
  return text;
}

std::vector<PlannedTrial> trials_of(const spec::Sweep& sweep, const Numbers& known, Draws draws) {
  std::int64_t next = 0;
  for (const auto& [json, number] : known) next = std::max(next, number + 1);
  std::vector<PlannedTrial> trials;
  Numbers left = known;
  for (spec::TrialValues& drawn : values_of_trials(sweep.spec(), draws)) {
    PlannedTrial trial{std::ssize(trials), std::move(drawn), ""};
    trial.json = sweep.json(trial.values);
    const std::string values = known.empty() ? "" : in_any_order(trial.json);
    if (const auto at = left.lower_bound(values); at != left.end() && at->first == values) {
      trial.number = at->second;
      left.erase(at);
    } else if (!known.empty()) {
      trial.number = next++;
    }
    trials.push_back(std::move(trial));
  }
  return trials;
}

SweepPlan plan_sweep(const spec::Sweep& sweep, int cores, const Numbers& known, Draws draws) {
  SweepPlan plan;
  if (const auto& doubtful = sweep.doubtful_mode()) {
    if (known.empty()) throw Error(ExitStatus::usage, *doubtful);
    plan.warnings.push_back(doubtful->message + "; the sweep goes on with the mode that it began with");
  }
  plan.trials = trials_of(sweep, known, draws);
  if (std::ssize(plan.trials) < sweep.spec().trials) {
    const std::string all = with_commas(std::ssize(plan.trials));
    plan.warnings.push_back(
        fmt::format("trials is {}, and the parameters have {} combinations: each is one trial, {} in all",
                    with_commas(sweep.spec().trials), all, all));
  }
  OneRunEach one_run_each(sweep);
  Mistakes mistakes;
  std::map<std::string, std::size_t> programs;
  std::optional<spec::Spec> first;
  std::vector<std::optional<spec::Loaded>> of_replicate(static_cast<std::size_t>(sweep.spec().replicates));
  for (const PlannedTrial& trial : plan.trials) {
    for (std::int64_t replicate = 0; replicate < sweep.spec().replicates && !mistakes.enough(); ++replicate) {
      const std::string name = trial_name(trial.number, replicate);
      try {
        spec::Loaded loaded = sweep.config(trial.values, replicate, sweep.spec().name + "-" + name);
        if (!first) first = loaded.spec;
        auto& same = of_replicate.at(static_cast<std::size_t>(replicate));
        if (!same) same = loaded;
        sweep.check_comparable(*same, loaded);
        for (const std::string& note : loaded.notes) {
          if (std::find(plan.notes.begin(), plan.notes.end(), note) == plan.notes.end()) plan.notes.push_back(note);
        }
        if (draws == Draws::distinct) one_run_each.add(loaded.resolved, trial, replicate);
        Row row;
        row.number = trial.number;
        row.replicate = replicate;
        row.parameters = trial.json;
        row.config = loaded.resolved;
        row.run_folder = "trials/" + name;
        const auto [at, is_new] = programs.emplace(spec::structure_of(loaded), plan.programs.size());
        if (is_new) {
          for (const char* const key : {"data.source", "model.init"}) {
            for (spec::PathAt& named : spec::paths_below(loaded, key)) plan.data_paths.push_back(std::move(named.path));
          }
          const bool compares = plan.programs.empty() && !sweep.spec().max_concurrent && !sweep.spec().vectorize;
          plan.programs.push_back(program_of(sweep, std::move(loaded), compares ? cores : 1, plan.warnings));
        }
        plan.rows.push_back(std::move(row));
        plan.program_of.push_back(at->second);
      } catch (const Error& error) {
        mistakes.add(error, trial_text(sweep, trial));
      }
    }
  }
  mistakes.throw_any();
  plan.timeout = first->mesh.timeout;
  check_lengths(sweep, plan, *first);
  check_rungs(sweep, plan);
  return plan;
}

std::vector<std::size_t> programs_of(const SweepPlan& plan, const std::vector<Row>& rows) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> known;
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    known.emplace(std::pair(plan.rows[i].number, plan.rows[i].replicate), plan.program_of[i]);
  }
  std::vector<std::size_t> programs;
  programs.reserve(rows.size());
  for (const Row& row : rows) programs.push_back(known.at({row.number, row.replicate}));
  return programs;
}

std::vector<Concurrency> concurrency_of(const spec::Sweep& sweep, const SweepPlan& plan,
                                        std::span<const Runner> runners) {
  const TrialProgram& largest =
      *std::max_element(plan.programs.begin(), plan.programs.end(),
                        [](const TrialProgram& a, const TrialProgram& b) { return a.memory < b.memory; });
  constexpr double well = 0.95;
  const int first_cores = runners.front().cores;
  const bool uses_all = plan.programs.front().speed_up >= well * first_cores && first_cores > 1;
  const bool one_at_a_time = !sweep.spec().max_concurrent && (largest.on_gpus || uses_all);
  const auto most_of = [&](const Runner& runner) {
    std::int64_t runs =
        std::min<std::int64_t>(sweep.spec().max_concurrent.value_or(runner.cores), std::ssize(plan.rows));
    const std::optional<std::size_t> available = runner.memory && !largest.on_gpus ? runner.memory : largest.available;
    if (available && largest.memory > 0) {
      runs = std::min(runs, static_cast<std::int64_t>(*available / largest.memory));
    }
    if (one_at_a_time) runs = 1;
    if (largest.on_gpus && !runner.has_gpus) runs = 0;
    // Each process has three descriptors here.
    rlimit files = {};
    constexpr std::int64_t others = 64;
    if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur != RLIM_INFINITY) {
      runs = std::min(runs, (static_cast<std::int64_t>(files.rlim_cur) - others) / 3);
    }
    return static_cast<int>(std::max<std::int64_t>(runs, 0));
  };
  std::vector<int> most;
  for (const Runner& runner : runners) most.push_back(most_of(runner));
  most.front() = std::max(most.front(), 1);
  std::vector<Concurrency> all(runners.size(), {0, 1});
  std::int64_t left =
      std::min<std::int64_t>(sweep.spec().max_concurrent.value_or(std::ssize(plan.rows)), std::ssize(plan.rows));
  // Each further run goes where there are most cores for each of them.
  for (; left > 0; --left) {
    std::optional<std::size_t> next;
    double best = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double cores = static_cast<double>(runners[i].cores) / (all[i].runs + 1);
      if (all[i].runs == most[i] || (next && cores <= best)) continue;
      next = i;
      best = cores;
    }
    if (!next) break;
    ++all[*next].runs;
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].workers = std::max(1, runners[i].cores / std::max(1, all[i].runs));
  }
  return all;
}

std::vector<Concurrency> one_each(const spec::Sweep& sweep, const SweepPlan& plan, std::span<const Runner> runners) {
  std::int64_t left = sweep.spec().max_concurrent.value_or(std::ssize(runners));
  const bool on_gpus = plan.programs.front().on_gpus;
  std::vector<Concurrency> all;
  for (const Runner& runner : runners) {
    const bool has_one = left > 0 && (runner.has_gpus || !on_gpus);
    left -= has_one ? 1 : 0;
    all.push_back({has_one ? 1 : 0, runner.cores});
  }
  return all;
}

}  // namespace pmaptrain::sweep
