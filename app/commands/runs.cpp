// runs: the run folders in a folder, with status and best value.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/report/runs/listing.h"
#include "core/run/records/lines.h"

namespace pmaptrain::app {
namespace {

constexpr std::int64_t most_killed = 5;  // are told how they go on

report::Json document_of(const report::ListedRun& run) {
  using report::Json;
  Json document{{"run", run.folder.string()},
                {"status", run.status},
                {"reason", run.reason.empty() ? Json(nullptr) : Json(run.reason)},
                {"steps", run.steps},
                {"best", nullptr},
                {"age_seconds", run.age},
                {"bytes", run.bytes}};
  if (run.best) {
    Json best{{"metric", run.best->measure}, {"value", run.best->value}, {"step", run.best->step}};
    best["split"] = run.best->split;
    if (run.best->member) best["member"] = *run.best->member;
    document["best"] = std::move(best);
  }
  if (!run.problem.empty()) document["problem"] = run.problem;
  return document;
}

std::string best_text(const report::ListedRun& run) {
  if (!run.best) return "-";
  std::string text = fmt::format("{} {}", run.best->measure, run::compact(run.best->value));
  if (run.best->member) text += fmt::format(" (member {})", *run.best->member);
  return text;
}

std::string table_of(const std::vector<report::ListedRun>& runs, int width) {
  std::vector<std::vector<std::string>> rows{{"run", "status", "steps", "best", "on", "age", "size"}};
  for (const report::ListedRun& run : runs) {
    rows.push_back({printable(run.folder.string()), run.status, with_commas(run.steps), best_text(run),
                    run.best ? run.best->split : "-", report::age_text(run.age), human_bytes(run.bytes)});
  }
  return in_columns(rows, {false, false, true, false, false, true, true}, width);
}

}  // namespace

int command_runs(CommandArguments arguments, const Streams& streams) {
  std::optional<std::string> given, sort;
  bool json = false;
  Arguments a("runs", "Lists the run folders in a folder and in folders in it, with status, best value, age and size.");
  a.optional_positional("DIR", given, "a folder with run folders; default: runs");
  a.text("--sort", "KEY", sort,
         "name (the default), status, steps, best, age, size, or the name of a measure such as accuracy, whose best "
         "values are then listed");
  a.flag("--json", json, "print a JSON list");
  a.footer(
      "The best value is that of the metric of train.checkpoint.best, else the smallest loss: of the evaluations on\n"
      "validation where there is one, else on test, else of the means of epochs. The age is the time since the run\n"
      "wrote its folder last.\n");
  if (!a.parse(arguments, streams)) return 0;
  const std::string folder = given.value_or("runs"), key = sort.value_or("name");
  const std::vector<std::string>& columns = report::list_columns();
  const bool is_measure = std::find(columns.begin(), columns.end(), key) == columns.end();

  std::vector<report::ListedRun> runs = report::list_runs(folder, is_measure ? key : "");
  if (is_measure && std::none_of(runs.begin(), runs.end(), [](const auto& run) { return run.best.has_value(); })) {
    const std::string near = nearest(key, columns);
    fail_option("--sort", key, "no run in '" + folder + "' has a measure '" + key + "'",
                near.empty() ? "--sort takes " + join(columns, ", ") + " or the name of a measure"
                             : "did you mean '" + near + "'?");
  }
  report::sort_runs(runs, key);
  if (json) {
    report::Json documents = report::Json::array();
    for (const report::ListedRun& run : runs) documents.push_back(document_of(run));
    streams.out << report::to_text(documents);
    return 0;
  }
  if (runs.empty()) {
    streams.out << for_reader("there are no runs in '" + printable(folder) + "'\n", streams);
    return 0;
  }
  streams.out << for_reader(table_of(runs, display::text_columns(streams.out_fd)), streams);
  std::vector<std::string> problems;
  for (const report::ListedRun& run : runs) {
    if (!run.problem.empty()) problems.push_back(printable(run.folder.string() + ": " + run.problem));
  }
  std::int64_t killed = 0;
  for (const report::ListedRun& run : runs) {
    if (run.status != "killed" || ++killed > most_killed) continue;
    problems.push_back("to go on: pmaptrain run " + shell_quoted(printable(run.folder.string())) + " --resume");
  }
  if (killed > most_killed) problems.push_back(counted(killed - most_killed, "other run") + " can go on likewise");
  print_notes(problems, streams);
  return 0;
}

}  // namespace pmaptrain::app
