// sweep: run trials of a config, and show what they gave.
#include "core/spec/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/deliver.h"
#include "app/display/sweep_display.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/display_option.h"
#include "app/options/output_file.h"
#include "app/signals.h"
#include "core/base/clock.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/run/files/file_writer.h"
#include "core/sweep/dry_run.h"
#include "core/sweep/processes.h"
#include "core/sweep/run.h"
#include "core/sweep/runners.h"
#include "core/sweep/summary.h"
#include "core/sweep/table.h"

namespace pmaptrain::app {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  std::string sweep;
  std::optional<std::string> folder;
  std::vector<std::string> set;
  bool resume = false, overwrite = false, dry_run = false, json = false;
  display::DisplayOptions display;
};

// --dry-run. A folder that is there is read only where the sweep would go on in it.
void show_plan(const spec::Sweep& sweep, const sweep::SweepOptions& how, const std::vector<sweep::Runner>& runners,
               bool json, const Streams& streams) {
  const int cores = runners.front().cores;
  sweep::Beginning begun;
  if (how.how.resume) {
    begun = sweep::check_sweep(sweep, how, cores);
  } else {
    begun.plan = sweep::plan_sweep(sweep, cores);
  }
  if (!json) print_notes(begun.plan.notes, streams);
  if (!json) print_warnings(begun.plan.warnings, streams);
  if (!json && begun.continues) {
    const auto done = std::count_if(begun.rows.begin(), begun.rows.end(),
                                    [](const sweep::Row& row) { return row.status == sweep::Status::done; });
    print_notes({fmt::format("--resume would go on in '{}': {} of {} done, and all of them are counted here",
                             how.folder.string(), done, counted(std::ssize(begun.rows), "run"))},
                streams);
  }
  const std::string text = sweep::dry_run_text(sweep, begun.plan, runners, json, display::text_columns(streams.out_fd));
  deliver(streams.out, json ? text : for_reader(text, streams));
}

int run_trials(CommandArguments arguments, const Streams& streams) {
  SweepOptions options;
  Arguments a("sweep run", "Runs the trials of a sweep file, and records their values in a folder.");
  a.positional("SWEEP", options.sweep, "a YAML file, or the folder of a sweep", "sweep.yaml");
  a.text("--dir", "DIR", options.folder, "the sweep's folder, instead of sweeps/NAME");
  a.flag("--resume", options.resume, "go on with the sweep in the folder, each trial from its last checkpoint");
  a.flag("--overwrite", options.overwrite, "replace the sweep in the folder");
  a.flag("--dry-run", options.dry_run, "check all trials, and show them and what they would cost; run none");
  a.flag("--json", options.json, "print the summary as a JSON document, and nothing else, on standard output");
  a.list("--set", "KEY=VALUE", options.set,
         "a key of the sweep file (trials=8), or of the config in all trials (train.duration='2 epochs'); may repeat");
  a.complete("--set", {Values::Kind::settings, spec::sweep_settings()});
  add_display_options(a, options.display, "a table of the trials that run");
  if (!a.parse(arguments, streams)) return 0;
  if (options.overwrite && options.resume) {
    fail_usage("--overwrite and --resume were both given", "--resume goes on with the sweep, --overwrite replaces it");
  }
  const Processes processes = streams.job != nullptr ? streams.job->processes() : Processes();
  const std::vector<sweep::Runner> all = sweep::find_runners(streams.job);
  sweep::Processes own(sweep::Processes::this_program());
  if (processes.placement.process != 0) {
    const StopSignals signals;
    sweep::serve(processes, own, *StopSignals::flag());
    return 0;
  }
  sweep::Runners runners(processes, all, own, StopSignals::take);
  const spec::Sweep sweep = spec::Sweep::load(options.sweep, options.set);
  sweep::SweepOptions how;
  std::error_code error;
  const bool is_folder = fs::is_directory(options.sweep, error);
  how.folder = options.folder ? fs::path(*options.folder)
               : is_folder    ? fs::path(options.sweep)
                              : fs::path("sweeps") / sweep.spec().name;
  how.how = {options.resume, options.overwrite};
  if (!options.json || !options.dry_run) print_notes(sweep.spec().notes, streams);
  if (options.dry_run) {
    show_plan(sweep, how, all, options.json, streams);
    return 0;
  }
  how.stop = StopSignals::flag();
  const Clock::time_point began = Clock::now();
  std::vector<sweep::Row> rows;
  {
    const StopSignals signals;
    options.display.stop = StopSignals::flag();
    display::SweepDisplay display(options.display, sweep.spec());
    how.told = [&display](const sweep::Progress& progress) { display.show(progress); };
    rows = sweep::run_sweep(sweep, how, runners);
  }
  const int signal = *StopSignals::flag();
  const sweep::Summary summary =
      sweep::write_summary(how.folder, signal != 0, seconds_since(began), display::text_columns(streams.out_fd));
  deliver(streams.out, options.json ? summary.json : for_reader(summary.text, streams));
  if (!options.json && summary.failure) {
    const bool color = display::use_color(options.display.color, streams.err_fd);
    deliver(streams.err, render(*summary.failure, color, display::text_columns(streams.err_fd)));
  }
  // A launcher kills all processes once one dies by a signal.
  if (signal != 0 && streams.job != nullptr) return 128 + signal;
  if (signal != 0) raise_by_default(signal);
  return summary.exit_status;
}

int show_trials(CommandArguments arguments, const Streams& streams) {
  std::string folder;
  std::optional<std::int64_t> top;
  std::optional<std::string> csv;
  bool json = false;
  Arguments a("sweep show", "Shows the trials of a sweep, the best first.");
  a.positional("DIR", folder, "the folder of a sweep", "sweeps/NAME");
  a.integer("--top", "N", 1, top, "only the best N trials");
  a.flag("--json", json, "print a JSON document");
  a.text("--csv", "FILE", csv,
         "also write all runs to FILE, a line for each; '-' writes them to standard output alone");
  if (!a.parse(arguments, streams)) return 0;
  if (csv && *csv != "-") check_folder_of("--csv", *csv);
  const sweep::Results results = sweep::read_results(folder);
  if (csv && *csv == "-") {
    deliver(streams.out, sweep::results_csv(results));
    return 0;
  }
  if (csv) run::write_whole(*csv, sweep::results_csv(results));
  const bool color = display::use_color(display::Color::automatic, streams.out_fd);
  const int columns = display::text_columns(streams.out_fd);
  deliver(streams.out, json ? sweep::results_json(results, top.value_or(0))
                            : for_reader(sweep::results_text(results, top.value_or(0), color, columns), streams));
  if (!json && results.is_left) {
    print_notes({"no process runs this sweep; to go on: " + sweep::resume_command(folder)}, streams);
  }
  return 0;
}

int show_best(CommandArguments arguments, const Streams& streams) {
  std::string folder;
  bool json = false, config = false;
  Arguments a("sweep best", "Shows the best trial of a sweep, with its values of the test split.");
  a.positional("DIR", folder, "the folder of a sweep", "sweeps/NAME");
  a.flag("--print-config", config, "print the config of the trial's first replicate, which pmaptrain run trains again");
  a.flag("--json", json, "print a JSON document; with --print-config it has the config as a text");
  if (!a.parse(arguments, streams)) return 0;
  const sweep::Results results = sweep::read_results(folder);
  if (!results.is_ended && sweep::has_best(results)) {
    const std::string what =
        results.is_left ? "to go on: " + sweep::resume_command(folder) : std::string("the sweep goes on");
    print_notes({sweep::progress_text(results) + ", so this is the best so far; " + what}, streams);
  }
  if (json) {
    deliver(streams.out, sweep::best_json(results, folder, config));
    return 0;
  }
  deliver(streams.out, config ? sweep::best_of(results).runs.front().config
                              : for_reader(sweep::best_text(results, folder), streams));
  return 0;
}

}  // namespace

int command_sweep(CommandArguments arguments, const Streams& streams) {
  const std::string what = arguments.empty() ? "--help" : arguments.front();
  if (what == "run") return run_trials(arguments.subspan(1), streams);
  if (streams.job != nullptr && streams.job->processes().placement.process != 0) return 0;
  if (what == "show") return show_trials(arguments.subspan(1), streams);
  if (what == "best") return show_best(arguments.subspan(1), streams);
  if (what == "--help" || what == "-h") {
    const std::string usage =
        "usage: pmaptrain sweep run SWEEP.yaml | show DIR | best DIR\n\n"
        "Runs many trials of a config, each with other values of some keys.\n\n" +
        definitions({{"run SWEEP.yaml", "run the trials of a sweep file"},
                     {"show DIR", "show the trials of a sweep, the best first"},
                     {"best DIR", "show the best trial, or print its config"}},
                    display::text_columns(streams.out_fd)) +
        "\n`pmaptrain sweep run --help` lists the options of each; docs/sweeps.md has an example.\n";
    streams.out << for_reader(usage, streams);
    return 0;
  }
  if (what == "resume" || what == "continue") {
    const std::string sweep = arguments.size() > 1 ? shell_quoted(arguments[1]) : "SWEEP.yaml";
    fail_usage("pmaptrain sweep has no '" + what + "'", "pmaptrain sweep run " + sweep + " --resume");
  }
  const std::string near = nearest(what, {"run", "show", "best"});
  fail_usage("pmaptrain sweep has no '" + what + "'",
             near.empty() ? "pmaptrain sweep run SWEEP.yaml, show DIR or best DIR" : "did you mean '" + near + "'?");
}

}  // namespace pmaptrain::app
