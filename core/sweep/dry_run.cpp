#include "core/sweep/dry_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/benchmark.h"
#include "core/report/json.h"
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/spec/load.h"
#include "core/sweep/halving.h"
#include "core/sweep/value_text.h"

namespace pmaptrain::sweep {
namespace {

constexpr std::size_t most_measured = 16;
constexpr std::int64_t measured_steps = 20;

// Seconds of a step of each program.
std::vector<double> step_seconds(const SweepPlan& plan) {
  std::vector<double> seconds;
  double sum = 0;
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    if (i >= most_measured) {
      seconds.push_back(sum / most_measured);
      continue;
    }
    const std::size_t row = static_cast<std::size_t>(std::find(plan.program_of.begin(), plan.program_of.end(), i) -
                                                     plan.program_of.begin());
    const setup::Setup setup = setup::make_setup(spec::load_text(plan.rows[row].config, "trial", "/", {}));
    const double median =
        report::benchmark(setup, std::min(measured_steps, plan.programs[i].steps)).median_step_seconds;
    seconds.push_back(median);
    sum += median;
  }
  return seconds;
}

// Steps of the runs of each program. Which trials go on is not known before; each program has its share of them.
std::vector<std::int64_t> steps_of_programs(const spec::Sweep& sweep, const SweepPlan& plan) {
  std::vector<std::int64_t> steps;
  for (std::size_t i = 0; i < plan.programs.size(); ++i) {
    const auto runs = std::count(plan.program_of.begin(), plan.program_of.end(), i);
    const std::int64_t sum =
        sweep.spec().replicates * steps_of(plan.programs[i].rungs, std::ssize(plan.trials), sweep.spec().factor);
    steps.push_back(sum * runs / std::ssize(plan.rows));
  }
  return steps;
}

}  // namespace

std::string dry_run_text(const spec::Sweep& sweep, const SweepPlan& plan, std::span<const Runner> runners, bool json,
                         int columns) {
  const std::vector<double> per_step = step_seconds(plan);
  const std::vector<std::int64_t> steps = steps_of_programs(sweep, plan);
  Concurrency concurrency{0, 1};
  for (const Concurrency& one : concurrency_of(sweep, plan, runners)) {
    if (concurrency.runs == 0) concurrency.workers = one.workers;
    concurrency.runs += one.runs;
  }
  std::int64_t all_steps = 0, examples = 0;
  double seconds = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all_steps += steps[i];
    examples += steps[i] * plan.programs[i].examples_per_step;
    seconds += static_cast<double>(steps[i]) * per_step[i];
  }
  const auto replicates = static_cast<std::size_t>(sweep.spec().replicates);
  if (json) {
    report::Json document;
    document["valid"] = true;
    document["base"] = sweep.base();
    document["trials"] = report::Json::array();
    for (std::size_t i = 0; i < plan.rows.size(); ++i) {
      const Row& row = plan.rows[i];
      document["trials"].push_back({{"number", row.number},
                                    {"replicate", row.replicate},
                                    {"parameters", try_parse_json(row.parameters)},
                                    {"set", sweep.settings(plan.trials[i / replicates].values, row.replicate)},
                                    {"program", plan.program_of[i]}});
    }
    document["programs"] = report::Json::array();
    for (std::size_t i = 0; i < plan.programs.size(); ++i) {
      document["programs"].push_back({{"rungs", plan.programs[i].rungs},
                                      {"memory_bytes", plan.programs[i].memory},
                                      {"step_seconds", per_step[i]},
                                      {"steps", steps[i]}});
    }
    document["concurrent"] = concurrency.runs;
    document["workers"] = concurrency.workers;
    document["steps"] = all_steps;
    document["examples"] = examples;
    document["seconds"] = seconds;
    return report::to_text(document);
  }
  std::vector<std::vector<std::string>> rows{{"trial"}};
  std::vector<std::string> names;
  for (const spec::SweepParameter& parameter : sweep.spec().parameters) {
    names.push_back(parameter.name);
    rows[0].push_back(printable(parameter.name));
  }
  rows[0].emplace_back("program");
  constexpr std::size_t most_shown = 64;
  for (std::size_t i = 0; i < std::min(plan.trials.size(), most_shown); ++i) {
    std::vector<std::string> row{std::to_string(plan.trials[i].number)};
    for (std::string& text : parameter_values(plan.trials[i].json, names, all_digits)) row.push_back(std::move(text));
    row.push_back(std::to_string(plan.program_of[i * replicates] + 1));
    rows.push_back(std::move(row));
  }
  std::string text =
      fmt::format("{} by {}: {}, {} of them at once with {} each\n\n", counted(std::ssize(plan.trials), "trial"),
                  spec::to_string(sweep.spec().search), counted(std::ssize(plan.rows), "run"), concurrency.runs,
                  counted(concurrency.workers, "worker"));
  text += in_columns(rows, std::vector<bool>(rows[0].size(), true), columns) + "\n";
  if (plan.trials.size() > most_shown) text += fmt::format("  and {} more\n", plan.trials.size() - most_shown);
  rows = {{"program", "runs", "rungs in steps", "memory of a run", "time of a step"}};
  for (std::size_t i = 0; i < std::min(plan.programs.size(), most_shown); ++i) {
    std::vector<std::string> rungs;
    for (const std::int64_t rung : plan.programs[i].rungs) rungs.push_back(with_commas(rung));
    rows.push_back({std::to_string(i + 1), with_commas(std::count(plan.program_of.begin(), plan.program_of.end(), i)),
                    join(rungs, " "), human_bytes(plan.programs[i].memory), with_prefix(per_step[i], "s")});
  }
  text += std::string("\ntrials that differ in numbers alone share a program") +
          (sweep.spec().vectorize ? ", and are trained together as far as memory allows:\n" : ":\n") +
          in_columns(rows, std::vector<bool>(rows[0].size(), true), columns);
  text += fmt::format("\n\nin all {} of {}, {} of training on all cores\n", counted(all_steps, "step"),
                      counted(examples, "example"), with_prefix(seconds, "s"));
  return wrapped(text, columns);
}

}  // namespace pmaptrain::sweep
