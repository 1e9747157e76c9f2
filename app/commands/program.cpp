#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/commands.h"
#include "app/deliver.h"
#include "app/display/terminal.h"
#include "app/failure.h"
#include "app/options/arguments.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/base/version.h"
#include "core/base/wrap.h"
#include "core/hints/hints.h"
#include "core/runtime/backends.h"

namespace pmaptrain::app {
namespace {

constexpr auto all_commands = std::to_array<Command>({
    {"run", "run CONFIG", "train what a config describes", command_run, "", true},
    {"validate", "validate CONFIG", "check a config and show its plan; nothing is run", command_validate},
    {"explain", "explain CONFIG", "print the program that a config becomes", command_explain},
    {"eval", "eval RUN", "evaluate a run's checkpoint", command_eval, "", true},
    {"predict", "predict RUN", "write what a run's model predicts for the inputs in a file", command_predict, "", true},
    {"sweep", "sweep run|show|best", "run many trials of a config, and show the best", command_sweep, "run show best",
     true},
    {"export", "export RUN", "write a run's model for other programs: ONNX, PyTorch, Flax", command_export},
    {"report", "report RUN|SWEEP...", "write runs as one HTML file: curves, results, worst examples", command_report},
    {"runs", "runs [DIR]", "list run folders with their status and best value", command_runs},
    {"diff", "diff RUN RUN", "show what differs between two runs: config, data, result", command_diff},
    {"collectives", "collectives [CONFIG]", "show what each collective over each axis gives every device",
     command_collectives},
    {"exec", "exec PROGRAM.pmt", "run a program that is written by hand", command_exec},
    {"bench", "bench CONFIG", "time a config's steps beside what the machine can do", command_bench},
    {"devices", "devices", "list the hardware there is", command_devices, "", true},
    {"preflight", "preflight [CONFIG]", "check the processes of a launcher, and the links between them",
     command_preflight, "", true},
    {"init", "init [NAME] [FILE]", "write a commented example config; without NAME list them", command_init},
    {"tokenize", "tokenize train|encode|decode|show", "make a tokenizer from texts; texts to ids, and back",
     command_tokenize, "train encode decode show"},
    {"schema", "schema", "print the JSON Schema of a config, for editors", command_schema},
    {"completion", "completion bash|zsh|fish", "print a script for a shell that completes command lines",
     command_completion},
    {"help", "help [KEY]", "what a config key takes: help optimizer.adam", command_help},
});

constexpr std::string_view what_it_does =
    "pmaptrain trains a model that a YAML file describes, on any number of logical devices along named axes.\n";
constexpr std::string_view first_run =
    "A first run:\n\n"
    "  pmaptrain init linear_regression\n"
    "  pmaptrain validate linear_regression.yaml\n"
    "  pmaptrain run linear_regression.yaml\n";

// --json stands for itself unless it is an option's value, which no sensible value is.
bool wants_json(CommandArguments arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

// Errors of the command line itself must know --color before it is parsed.
display::Color color_of(CommandArguments arguments) {
  display::Color color = display::Color::automatic;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    std::string_view word;
    if (arguments[i] == "--color" && i + 1 < arguments.size()) word = arguments[i + 1];
    if (arguments[i].starts_with("--color=")) word = std::string_view(arguments[i]).substr(std::strlen("--color="));
    if (word == "always") color = display::Color::always;
    if (word == "never") color = display::Color::never;
    if (word == "auto") color = display::Color::automatic;
  }
  return color;
}

std::string version_text() {
  const std::string of_commit = commit.empty() ? "" : " (commit " + std::string(commit) + ")";
  return "pmaptrain " + std::string(version) + of_commit + "\ncompiler: " + std::string(compiler) + ", " +
         std::string(build_type) + " build\nbackends: cpu (" + std::string(kernel_library) +
         "), cuda (GPUs, by libpmaptrain_cuda.so), reference (the interpreter)\n";
}

int dispatch_command(CommandArguments arguments, const Streams& streams) {
  const std::string first = arguments.empty() ? "--help" : arguments.front();
  if (first == "--help" || first == "-h") {
    streams.out << for_reader(overview(display::text_columns(streams.out_fd)), streams);
    return 0;
  }
  if (first == "--version") {
    streams.out << for_reader(version_text(), streams);
    return 0;
  }
  for (const Command& command : all_commands) {
    if (command.name != first) continue;
    const bool is_first = streams.job == nullptr || streams.job->processes().placement.process == 0;
    return is_first || command.in_processes ? command.call(arguments.subspan(1), streams) : 0;
  }
  std::vector<std::string> names{"--help", "--version"};
  for (const Command& command : all_commands) names.emplace_back(command.name);
  const std::string near = nearest(first, names);
  const std::string kind = first.starts_with("-") ? "option" : "command";
  if (first.ends_with(".yaml") || first.ends_with(".yml")) {
    fail_usage("pmaptrain needs a command before '" + first + "'", "pmaptrain run " + shell_quoted(first));
  }
  if (first.starts_with("-") && nearest(first, {"--help", "--version"}).empty()) {
    fail_usage("pmaptrain has no option '" + first + "'",
               "options follow the command: pmaptrain run CONFIG " + shell_quoted(first) + " ...");
  }
  const std::optional<Hint> hint = same_letters(first, names) ? std::nullopt : hint_for("command", first);
  fail_usage("pmaptrain has no " + kind + " '" + first + "'",
             hint           ? hint->help
             : near.empty() ? "the commands are " + join({names.begin() + 2, names.end()}, ", ")
                            : "did you mean '" + near + "'?");
}

}  // namespace

std::span<const Command> commands() { return all_commands; }

ProgramSyntax program_syntax() {
  const auto syntax_of = [](const Command& command, std::vector<std::string> arguments) {
    SyntaxStream out;
    arguments.emplace_back("--help");
    command.call(arguments, {out, out});
    return out.syntax;
  };
  ProgramSyntax program;
  program.options = {{{"-h", "--help"}, "", "list the commands"}, {{"--version"}, "", "print what this build has"}};
  for (const Command& command : all_commands) {
    CommandEntry entry{std::string(command.name), std::string(command.summary)};
    for (std::string_view rest = command.subcommands; !rest.empty();) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      if (auto syntax = syntax_of(command, {std::string(rest.substr(0, end))})) {
        entry.subcommands.push_back(std::move(*syntax));
      }
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    if (entry.subcommands.empty()) entry.syntax = syntax_of(command, {});
    program.commands.push_back(std::move(entry));
  }
  return program;
}

std::string introduction() { return std::string(what_it_does) + "\n" + std::string(first_run); }

std::string overview(int columns) {
  const int width = columns > 0 ? std::min(columns, text_width) : text_width;
  std::vector<Definition> all;
  all.reserve(all_commands.size());
  for (const Command& command : all_commands) all.push_back({std::string(command.usage), std::string(command.summary)});
  const std::string first = std::string(what_it_does);
  return (width < text_width ? refilled(first, width) : first) + "\nusage: pmaptrain COMMAND ...\n\n" +
         definitions(all, width) + "\n" + std::string(first_run) +
         "\n`pmaptrain COMMAND --help` lists a command's options, `pmaptrain --version` what this build has.\n";
}

int run_program(CommandArguments arguments, const Streams& streams) {
  const auto tell = [&](const std::vector<Diagnostic>& diagnostics, ExitStatus status) {
    const int number = static_cast<int>(status);
    // The other processes may wait in collectives of their GPUs, where no message reaches them. The launcher ends them
    // when this process leaves without a word.
    const bool leaves_at_once = streams.job != nullptr && gpus_are_given_up();
    if (streams.job != nullptr) {
      const int process = streams.job->processes().placement.process;
      if (process != 0) {
        if (leaves_at_once || streams.job->fail(status))
          std::cerr << "process " << process << ": " << render(diagnostics, false);
        if (leaves_at_once) std::_Exit(number);
        return number;
      }
    }
    bool delivered = true;
    if (wants_json(arguments)) {
      delivered = deliver(streams.out,
                          failure_json(diagnostics, number, !arguments.empty() && arguments.front() == "validate"));
    } else {
      streams.out.flush();
      const bool color = display::use_color(color_of(arguments), streams.err_fd);
      delivered = deliver(streams.err, render(diagnostics, color, display::text_columns(streams.err_fd)));
    }
    if (!delivered || leaves_at_once) std::_Exit(number);
    if (streams.job != nullptr) streams.job->fail(status);
    return number;
  };
  try {
    const int status = dispatch_command(arguments, streams);
    return streams.job != nullptr ? streams.job->end(status) : status;
  } catch (const FailedElsewhere& error) {  // that process tells
    return static_cast<int>(error.status());
  } catch (const Error& error) {
    return tell(error.diagnostics(), error.status());
  } catch (const std::bad_alloc&) {
    return tell({{"resource", {}, "memory ran out", "pmaptrain validate CONFIG shows what a config needs", {}}},
                ExitStatus::resource);
  } catch (const std::exception& error) {
    return tell({{"internal", {}, std::string("unexpected: ") + error.what(), "", {}}}, ExitStatus::failed);
  }
}

}  // namespace pmaptrain::app
