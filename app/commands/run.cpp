// run: train what a config describes.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/deliver.h"
#include "app/display/display.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "app/options/display_option.h"
#include "app/options/trace_option.h"
#include "app/signals.h"
#include "core/base/json.h"
#include "core/base/text.h"
#include "core/base/utf8.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/report/json.h"
#include "core/report/plan_report.h"
#include "core/run/checkpoint.h"
#include "core/run/records/final_report.h"
#include "core/run/records/records.h"
#include "core/run/token_cache.h"
#include "core/setup/initialize.h"
#include "core/setup/make_setup.h"
#include "core/train/changes.h"
#include "core/train/session.h"

namespace pmaptrain::app {
namespace {

struct RunOptions {
  ConfigOptions config;
  std::optional<std::string> run_dir;
  std::optional<std::int64_t> max_steps;
  std::vector<std::string> changes;
  bool overwrite = false, resume = false, dry_run = false, json = false, verify_replicas = false, verify_data = false;
  TraceOption trace;
  display::DisplayOptions display;
};

void add_arguments(Arguments& a, RunOptions& options) {
  options.config.add_to(a);
  a.text("--name", "NAME", options.config.overrides.name, "the run's name; its folder is runs/NAME");
  a.text("--run-dir", "DIR", options.run_dir, "the run folder itself, instead of runs/NAME");
  a.flag("--overwrite", options.overwrite, "replace the run folder, if pmaptrain wrote it");
  a.flag("--resume", options.resume,
         "continue the run in the run folder from its last checkpoint, or begin it if there is none");
  a.list(
      "--change", "KEY=VALUE", options.changes,
      "with --resume: a number, such as optimizer.learning_rate, has this value from the resumed step on; may repeat");
  a.integer("--max-steps", "N", 1, options.max_steps,
            "stop after step N of the run, with a checkpoint; steps before --resume count");
  a.text("--max-time", "TIME", options.config.overrides.max_time,
         "stop after this time, such as '30 minutes', with a checkpoint (train.max_time)");
  a.flag("--dry-run", options.dry_run, "as `pmaptrain validate`: show the plan without running it");
  a.flag("--json", options.json, "print the summary as a JSON document, and nothing else, on standard output");
  add_display_options(a, options.display, "a progress bar");
  a.flag("-q,--quiet", options.display.quiet, "as --progress none");
  a.flag("-v,--verbose", options.display.verbose, "step lines also show the time since the start");
  options.trace.add_to(a);
  ConfigOptions::add_verify_data_to(a, options.verify_data);
  a.flag("--verify-replicas", options.verify_replicas,
         "every device stores its own copy of all replicated parameters and state, and the copies are compared at the "
         "log interval (or train.verify_replicas); same bits, more time and memory");
}

// The command as it would be typed again, without what a refused run folder's hints choose.
std::string command_line(CommandArguments arguments) {
  std::string out = "pmaptrain run";
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--overwrite" || argument == "--resume" || argument.starts_with("--name=") ||
        argument.starts_with("--run-dir="))
      continue;
    if (argument == "--name" || argument == "--run-dir") {
      ++i;
      continue;
    }
    out += " " + shell_quoted(argument);
  }
  return out;
}

// A run folder that is resumed by its own config is that folder, wherever it is.
std::filesystem::path run_folder(const RunOptions& options, const spec::Spec& spec) {
  if (options.run_dir) return *options.run_dir;
  std::error_code ignored;
  const bool itself =
      options.resume && !options.config.overrides.name && std::filesystem::is_directory(options.config.config, ignored);
  return itself ? std::filesystem::path(options.config.config) : std::filesystem::path("runs") / spec.name;
}

// The names of the runs beside a run folder.
std::vector<std::string> runs_beside(const std::filesystem::path& run) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(run.parent_path(), ignored)) {
    if (run::last_checkpoint(entry.path())) names.push_back(entry.path().filename().string());
  }
  return names;
}

// What to say where --resume begins a run anew although there is something of it, or a run that may be meant: in its
// own folder, beside the config, or under a similar name. Else empty, since scripts resume a run that has not begun
// yet.
std::string begins_anew(const RunOptions& options, const std::filesystem::path& run) {
  namespace fs = std::filesystem;
  if (!options.resume) return "";
  const std::string none = "'" + printable(run.string()) + "' has no checkpoint to resume from, so the run begins anew";
  std::error_code ignored;
  if (fs::file_size(run / "metrics.jsonl", ignored) > 0 && !ignored) return none + "; its metrics are replaced";
  if (options.run_dir) return "";
  const fs::path beside = fs::path(options.config.config).parent_path() / "runs" / run.filename();
  const bool is_itself = fs::weakly_canonical(beside, ignored) == fs::weakly_canonical(run, ignored);
  if (!is_itself && run::last_checkpoint(beside)) {
    return none + fmt::format("; '{}', beside the config, has one, and is resumed with --run-dir {}",
                              printable(beside.string()), printable(shell_quoted(beside.string())));
  }
  const std::string near = nearest(run.filename().string(), runs_beside(run));
  return near.empty() ? "" : none + "; did you mean '" + printable((run.parent_path() / near).string()) + "'?";
}

// The same where the name of the run is like none beside it, which may all the same be mistyped.
std::string no_such_run(const RunOptions& options, const std::filesystem::path& run) {
  if (!options.resume || options.run_dir || runs_beside(run).empty()) return "";
  return "there is no run '" + printable(run.filename().string()) + "' in " + printable(run.parent_path().string()) +
         ": --resume begins a new one";
}

// Remembers why guards stopped the run: the members of an ensemble may be stopped one after another.
class GuardMessages : public run::Consumer {
 public:
  void on(const run::Event& event) override {
    const auto* warned = std::get_if<run::Warned>(&event);
    if (warned != nullptr && warned->stops) texts.push_back(warned->text);
  }
  std::vector<std::string> texts;
};

// Why a run that was trained ends with another status than 0.
std::vector<Diagnostic> errors_of(const run::Ended& ended, const std::vector<std::string>& guards) {
  std::vector<Diagnostic> errors;
  if (ended.reason == "guard") {
    for (const std::string& guard : guards) errors.push_back({"guard", {}, guard});
    if (guards.empty()) errors.push_back({"guard", {}, "a guard stopped the training"});
  }
  for (const std::string& missing : ended.missing) {
    errors.push_back(
        {"resource",
         {},
         missing,
         "the last checkpoint is complete: pmaptrain eval " + shell_quoted(ended.run_dir) + " --checkpoint last"});
  }
  return errors;
}

// The summary document; where the run failed, with its errors, as every failure has them.
std::string summary(const run::Ended& ended, const std::vector<Diagnostic>& errors) {
  std::string text = run::summary_json(ended, std::string(version));
  if (errors.empty()) return text;
  report::Json document = parse_json(text);
  document["errors"] = report::errors_json(errors);
  return report::to_text(document);
}

std::string report(const run::Ended& ended, const RunOptions& options, const Streams& streams) {
  const bool color = display::use_color(options.display.color, streams.out_fd);
  return for_reader(run::final_report(ended, color, display::text_columns(streams.out_fd)), streams);
}

// The same values for a run that begins: " --set KEY=VALUE" for each.
std::string as_settings(const std::vector<std::string>& changes) {
  std::string text;
  for (const std::string& change : changes) text += " --set " + shell_quoted(change);
  return text;
}

// The config with what it keeps of the run. An error may be about the blocks, which no option has set.
template <class Load>
spec::Loaded load_kept(const Load& load, const std::string& blocks, const std::string& run) {
  try {
    return load();
  } catch (const Error& error) {
    if (blocks.empty()) throw;
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    for (Diagnostic& diagnostic : diagnostics) {
      if (diagnostic.place.excerpt.text() != blocks) continue;
      diagnostic.help =
          "start at most as many processes as there are blocks, on as many devices as blocks divide, or take other "
          "blocks by --set mesh.blocks=N: from there on bits may differ";
      diagnostic.notes.push_back(fmt::format("'{}' has {}, which --resume keeps", run, blocks));
    }
    throw Error(error.status(), std::move(diagnostics));
  }
}

// --change belongs to --resume.
void check_changes(const RunOptions& options) {
  if (options.changes.empty() || (options.resume && !options.dry_run)) return;
  fail_usage("--change changes a run that --resume continues" +
                 std::string(options.resume ? ", and --dry-run continues none" : ""),
             options.resume ? "omit --dry-run, or --change"
                            : "--resume --change goes on with a run that there is; a new one begins with the value:" +
                                  as_settings(options.changes));
}

// There is no checkpoint yet, so the run begins anew.
[[noreturn]] void refuse_first_changes(const RunOptions& options, const std::filesystem::path& run) {
  fail_usage("--change has nothing to change: '" + run.string() + "' has no checkpoint to resume from",
             "the run begins with the value:" + as_settings(options.changes));
}

// A run that --resume finds finished, with its status.
int tell_finished(const train::FinishedRun& finished, const run::RunState& state, const RunOptions& options,
                  const Streams& streams) {
  std::string text = "'" + printable(finished.ended.run_dir) + "' is finished";
  const std::vector<std::string> why = train::why_finished(state);
  if (!why.empty()) text += ": " + printable(join(why, "; "));
  text += "; " + finished.advice + "\n";
  if (!options.display.quiet) streams.err << wrapped(text, display::text_columns(streams.err_fd));
  deliver(streams.out, options.json ? summary(finished.ended, errors_of(finished.ended, why))
                                    : report(finished.ended, options, streams));
  return finished.ended.exit_status;
}

}  // namespace

int command_run(CommandArguments arguments, const Streams& streams) {
  RunOptions options;
  Arguments a("run", "Trains a model, and writes metrics, a checkpoint and a summary to a run folder.");
  add_arguments(a, options);
  if (!a.parse(arguments, streams)) return 0;
  if (options.overwrite && options.resume) {
    fail_usage("--overwrite and --resume were both given", "--resume continues the run, --overwrite replaces it");
  }
  check_changes(options);
  options.config.overrides.processes = processes_of(streams);
  const run::FirstProcess first(streams.job);
  const spec::ConfigText config = read_config(options.config, streams);
  const auto load = [&] { return spec::load(config, options.config.overrides); };
  // How many blocks of devices a resumed run needs, its folder says, which is not known yet.
  if (options.resume) options.config.overrides.processes = 1;
  spec::Loaded loaded = load();
  options.config.overrides.processes = processes_of(streams);

  const std::optional<train::TraceOptions> trace = options.trace.accepted(options.overwrite);
  if (options.dry_run) {
    if (!first.is_this()) return 0;
    const setup::Setup setup = setup::make_setup(std::move(loaded));
    const report::ValidateReport report =
        report::make_validate_report(setup, options.verify_replicas, processes_of(streams));
    if (!options.json) print_warnings(report.warnings, streams);
    streams.out << (options.json
                        ? report::validate_json(setup, report)
                        : for_reader(report::validate_text(setup, report, display::text_columns(streams.out_fd)),
                                     streams));
    return 0;
  }

  train::SessionOptions session;
  session.run_dir = first.text([&] { return run_folder(options, loaded.spec).string(); });
  session.folder.writes = first.is_this();
  options.display.mute = !session.folder.writes;
  session.folder.overwrite = options.overwrite;
  session.folder.resume = options.resume;
  session.folder.command = command_line(arguments);
  session.folder.explicit_name = options.config.overrides.name.has_value();
  session.folder.explicit_dir = options.run_dir.has_value();
  session.max_steps = options.max_steps;
  session.max_time = loaded.max_time;
  session.verify_replicas = options.verify_replicas;
  session.trace = trace;
  std::optional<train::ResumePoint> resume;
  std::vector<spec::ChangedKey> taken;
  if (options.resume) {
    try {
      resume = train::find_resume_point(session.run_dir, first, &loaded.spec.train);
    } catch (const Error&) {
      // What another process is replacing is not whole, and not damaged: then this throws and says so.
      run::RunFolder::check(session.run_dir, session.folder);
      throw;
    }
    session.resume = resume ? &*resume : nullptr;
  }
  if (!resume) {
    if (options.resume && !first.is_alone()) loaded = load();
    if (!options.changes.empty()) refuse_first_changes(options, session.run_dir);
    if (std::string text = train::unrepeated_changes_warning(loaded); !text.empty())
      loaded.warnings.push_back(std::move(text));
  } else {
    const train::RunConfig run = train::read_run_config(session.run_dir, first);
    std::vector<std::string> kept = train::kept_decisions(run, loaded);
    const std::string blocks = train::blocks_override(run, loaded);
    if (!blocks.empty()) kept.push_back(blocks);
    if (!kept.empty() || !first.is_alone()) {
      std::vector<std::string>& set = options.config.overrides.set;
      set.insert(set.end(), kept.begin(), kept.end());
      loaded = load_kept(load, blocks, session.run_dir.string());
    }
    if (!blocks.empty()) {
      loaded.facts.push_back(blocks + " is kept from the run, so the bits stay those of its processes");
    }
    taken = train::taken_from_config(run, loaded);
    for (std::string& note : train::check_config_continues(run, loaded, resume->checkpoint.state.contents)) {
      loaded.warnings.push_back(std::move(note));
    }
    loaded.warnings.insert(loaded.warnings.end(), resume->warnings.begin(), resume->warnings.end());
    for (std::string& warning : train::apply_changes(run, options.changes, loaded, resume->checkpoint.state)) {
      loaded.warnings.push_back(std::move(warning));
    }
    // It may be gone by now, and only the base of adapters is read again.
    if (!loaded.spec.lora) {
      loaded.spec.model.initial_from.reset();
      if (auto& ensemble = loaded.spec.ensemble) {
        for (spec::Spec& member : ensemble->alone) member.model.initial_from.reset();
      }
    }
    const run::RunState& state = resume->checkpoint.state;
    session.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  }
  if (const auto& from = loaded.spec.model.initial_from) session.folder.input_files.emplace_back(from->path);
  // Told before the data is read; the session looks again when everything else is accepted.
  run::RunFolder::check(session.run_dir, session.folder);

  session.agreement = streams.job;
  session.stop = options.display.stop = StopSignals::flag();

  run::Ended ended;
  std::optional<train::TraceSummary> traced;
  GuardMessages guards;
  std::optional<StopSignals> signals;
  {
    auto display = display::make_display(options.display);
    display->on(run::Working{"opening the data"});
    std::shared_ptr<setup::InitialFile> initial;  // one process opens it when it needs it
    if (!first.is_alone() && loaded.spec.model.initial_from) {
      initial = std::make_shared<setup::InitialFile>(setup::open_initial_file(loaded.spec.model, first));
    }
    loaded.spec.data.token_cache = run::tokens_beside(session.run_dir);
    setup::Setup setup =
        resume ? train::make_resumed_setup(std::move(loaded), resume->checkpoint.state, options.verify_data, initial)
               : setup::make_setup(std::move(loaded), std::nullopt, nullptr, std::move(initial));
    if (!resume) {
      setup.contents = input::contents_of(setup.loaded, options.verify_data);
      std::string text = first.is_this() ? begins_anew(options, session.run_dir) : "";
      std::string fact = first.is_this() && text.empty() ? no_such_run(options, session.run_dir) : "";
      if (!text.empty()) setup.warnings.push_back(std::move(text));
      if (!fact.empty()) setup.loaded.facts.push_back(std::move(fact));
    }
    if (resume) {
      session.notes = train::check_data_continues(resume->checkpoint.state, setup);
      for (std::string& warning : train::tell_taken(taken, resume->checkpoint.state, setup)) {
        session.notes.push_back(std::move(warning));
      }
      const auto finished = train::find_finished(session.run_dir, resume->checkpoint.state, setup.spec().train,
                                                 setup.timetable, options.max_steps, first);
      if (finished && !options.changes.empty()) {
        train::refuse_without_steps(options.changes.front(), "the run is finished", finished->advice);
      }
      if (finished) {
        display.reset();  // its last line is gone then
        if (session.folder.writes) {
          if (!display::is_silent(options.display)) print_notes(setup.loaded.facts_and_notes(), streams);
          print_warnings(session.notes, streams);
        }
        return tell_finished(*finished, resume->checkpoint.state, options, streams);
      }
      const std::int64_t step = resume->checkpoint.state.step;
      if (options.max_steps && step >= *options.max_steps && !options.changes.empty()) {
        train::refuse_without_steps(options.changes.front(), "the run is at step " + with_commas(step) + " already",
                                    "a larger --max-steps goes on");
      }
      if (step > options.max_steps.value_or(step)) {
        session.notes.push_back(fmt::format("the run is at step {} already, past --max-steps {}: no step is taken",
                                            with_commas(step), with_commas(*options.max_steps)));
        session.max_steps = step;
      }
    }
    run::Consumer* const consumers[] = {display.get(), &guards};
    display->on(run::Working{"preparing memory and kernels"});
    session.working = [&display](const run::Working& working) { display->on(working); };
    train::Session run(setup, std::move(session));
    signals.emplace();  // until here a signal simply ends the process: nothing has been written
    ended = run.run(consumers);
    traced = run.trace_summary();
  }
  // A signal before the first step. A launcher kills all processes once one dies by a signal.
  if (ended.run_dir.empty() && streams.job != nullptr) return ended.exit_status;
  if (ended.run_dir.empty()) raise_by_default(*StopSignals::flag());
  const std::vector<Diagnostic> errors = errors_of(ended, guards.texts);
  deliver(streams.out, options.json ? summary(ended, errors) : report(ended, options, streams));
  const int columns = display::text_columns(streams.err_fd);
  deliver(streams.err, wrapped(run::how_to_continue(ended), columns));
  if (trace && !options.display.quiet && (traced || ended.missing.empty())) {
    deliver(streams.err, wrapped(trace_text(traced, columns), columns));
  }
  // A guard's error has been shown as a line of the log.
  if (!options.json && !ended.missing.empty()) {
    deliver(streams.err, render(errors, display::use_color(options.display.color, streams.err_fd), columns));
  }
  const int signal = *StopSignals::flag();
  if (signal != 0 && streams.job == nullptr && ended.reason != "guard") raise_by_default(signal);
  return ended.exit_status;
}

}  // namespace pmaptrain::app
