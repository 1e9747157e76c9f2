// report: runs as one HTML file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/output_file.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/report/html/page.h"
#include "core/report/plan_report.h"
#include "core/run/checkpoint.h"
#include "core/run/files/file_writer.h"
#include "core/run/token_cache.h"
#include "core/setup/make_setup.h"
#include "core/setup/setup.h"
#include "core/sweep/report_table.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_worst = 24;

bool is_report(const fs::path& file) {
  std::string head(report::page_head.size(), '\0');
  std::ifstream(file, std::ios::binary).read(head.data(), static_cast<std::streamsize>(head.size()));
  return head == report::page_head;
}

void check_output(const std::optional<std::string>& output, bool overwrite) {
  if (!output) fail_usage("report needs --output FILE", "what to write, such as --output report.html");
  check_folder_of("--output", *output);
  std::error_code ignored;
  if (!fs::exists(*output, ignored)) return;
  if (!fs::is_regular_file(*output, ignored)) {
    fail_option("--output", *output, "'" + *output + "' is no regular file", "name another file");
  }
  if (!overwrite && !is_report(*output)) {
    fail_option("--output", *output, "'" + *output + "' exists, and is no report", "--overwrite replaces it");
  }
}

bool is_sweep(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(fs::path(folder) / "sweep.sqlite", ignored);
}

// The sweep with the runs of its best trials.
void add_sweep(const std::string& folder, report::Page& page, std::vector<std::string>& notes) {
  constexpr std::size_t most_runs = 8;
  const sweep::Results results = sweep::read_results(folder);
  page.sweeps.push_back(sweep::report_table(results, folder));
  if (const auto& unfinished = page.sweeps.back().unfinished) {
    notes.push_back(
        fmt::format("{}: {}, so this is the sweep so far; {}{}", page.sweeps.back().name, unfinished->progress,
                    unfinished->runs ? "it goes on" : "to go on: ", unfinished->runs ? "" : unfinished->command));
  }
  for (const fs::path& run : sweep::best_runs(results, folder, most_runs)) {
    page.runs.push_back(report::read_run(run.string()));
    page.runs.back().label = sweep::trial_name(page.runs.back().label);
  }
}

std::string reason_of(const Error& error) {
  const Diagnostic& diagnostic = error.diagnostics().front();
  return diagnostic.place.known() && diagnostic.place.line == 0 ? diagnostic.place.file + ": " + diagnostic.message
                                                                : diagnostic.message;
}

// What needs the run's data: the plan and predictions. Where that is gone the report says why.
report::RunExtras extras_of(report::RunRecord run, const std::optional<std::string>& checkpoint,
                            const std::optional<std::string>& data_root, const std::optional<std::string>& base,
                            std::vector<std::string>& notes) {
  report::RunExtras extras;
  try {
    if (data_root || base) {
      spec::Overrides overrides;
      overrides.data_root = data_root;
      overrides.base = base;
      run.config = spec::load(run.folder.string(), overrides);
      for (const std::string& note : run.config.facts_and_notes()) notes.push_back(run.label + ": " + note);
    }
    run.config.spec.data.token_cache = run::tokens_beside(run.folder, run::Keeps::no);
    const setup::Setup setup = setup::make_setup(run.config);
    const report::ValidateReport plan = report::make_validate_report(setup);
    extras.plan = report::validate_json(setup, plan);
    extras.memory = setup::rows_of(plan.memory);
  } catch (const Error& error) {
    extras.plan_problem = reason_of(error);
    notes.push_back(run.label + ": there is no plan: " + extras.plan_problem);
  }
  try {
    const std::string chosen =
        checkpoint ? *checkpoint : run::default_checkpoint(run.config.spec, run.folder, std::nullopt);
    extras.predictions = report::predict_split(run, chosen, most_worst);
    if (extras.predictions && !checkpoint) {
      for (std::string& note : notes_of_default(run.folder.string(), chosen, {extras.predictions->checkpoint})) {
        notes.push_back(run.label + ": " + note);
      }
    }
  } catch (const Error& error) {
    if (checkpoint && error.status() == ExitStatus::usage) throw;  // there is no such checkpoint
    extras.predictions_problem = reason_of(error);
    notes.push_back(run.label + ": there are no predictions: " + extras.predictions_problem);
  }
  return extras;
}

// Runs of one name have the folders above them before it, so that labels differ.
void tell_apart(std::vector<report::RunRecord>& runs) {
  std::vector<std::string> labels;
  labels.reserve(runs.size());
  for (const report::RunRecord& run : runs) labels.push_back(run.label);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (std::count(labels.begin(), labels.end(), labels[i]) > 1) runs[i].label = runs[i].folder.string();
  }
}

// Of a page with sweeps, their names: its runs are the best of theirs.
std::string title_of(const report::Page& page) {
  constexpr std::size_t most = 4;
  std::vector<std::string> labels;
  for (const report::SweepTable& sweep : page.sweeps) {
    labels.push_back(letters_of(sweep.name).starts_with("sweep") ? sweep.name : "sweep " + sweep.name);
  }
  if (labels.empty()) {
    for (const report::RunRecord& run : page.runs) labels.push_back(run.label);
  }
  const std::size_t all = labels.size();
  labels.resize(std::min(most, all));
  return join(labels, ", ") + (all > most ? fmt::format(" and {} more", all - most) : "");
}

report::TraceTable trace_of(const std::string& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    fail_option("--trace", file, "there is no file '" + file + "'", "pmaptrain run CONFIG --trace FILE writes one");
  }
  return report::read_trace(file);
}

}  // namespace

int command_report(CommandArguments arguments, const Streams& streams) {
  std::vector<std::string> folders;
  std::optional<std::string> output, trace, checkpoint, data_root, base;
  bool overwrite = false, without_data = false;
  Arguments a("report",
              "Writes runs as one HTML file that needs nothing else: curves, results, confusion of classes, the "
              "examples that are predicted worst, plan and memory. Several runs are compared.");
  a.positionals("RUN", folders,
                "run folders, such as runs/cnn, and folders of sweeps, each with the runs of its best trials",
                "runs/cnn --output report.html");
  a.text("--output", "FILE", output, "the file to write, such as report.html; a report that is there is replaced");
  a.text("--trace", "FILE", trace, "a trace that run --trace wrote, whose time is shown by layer");
  ConfigOptions::add_checkpoint_to(a, checkpoint);
  ConfigOptions::add_data_root_to(a, data_root);
  ConfigOptions::add_base_to(a, base);
  a.flag("--without-data", without_data,
         "read the run folders alone: no plan, and predictions only as the run recorded them");
  a.flag("--overwrite", overwrite, "replace the output even if it is no report");
  a.footer(
      "The confusion of classes and the worst examples are those of validation where there is one, else of test. They\n"
      "and the plan need the data of the run; where it is gone, the report says so. Curves of more than 2,000 points\n"
      "are thinned, and keep their smallest and largest values.\n");
  if (!a.parse(arguments, streams)) return 0;
  if (data_root && without_data) {
    fail_usage("--data-root and --without-data were both given", "--without-data reads no data; leave one out");
  }
  check_output(output, overwrite);
  report::Page page;
  std::vector<std::string> notes;
  for (const std::string& folder : folders) {
    if (is_sweep(folder)) {
      add_sweep(folder, page, notes);
      continue;
    }
    check_run_folder("report", folder);
    page.runs.push_back(report::read_run(folder));
  }
  tell_apart(page.runs);
  if (trace) page.trace = trace_of(*trace);
  for (const report::RunRecord& run : page.runs) {
    page.extras.push_back(without_data ? report::RunExtras{} : extras_of(run, checkpoint, data_root, base, notes));
  }
  page.title = title_of(page);
  const std::string html = report::html_page(page);
  run::write_whole(*output, html);
  for (std::string& note : notes) note = printable(note);
  print_notes(notes, streams);
  const std::string text =
      fmt::format("{}: report of {} ({})\n", shell_quoted(printable(*output)),
                  folders.size() == 1 ? shell_quoted(printable(folders.front()))
                                      : counted(std::ssize(folders), page.sweeps.empty() ? "run" : "folder"),
                  human_bytes(html.size()));
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
