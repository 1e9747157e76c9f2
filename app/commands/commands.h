// The commands of the program. Each parses its own arguments, does its work, and returns the exit status; what goes
// wrong comes out as an exception, which run_program() renders.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "app/options/streams.h"
#include "app/options/syntax.h"

namespace pmaptrain::app {

int command_run(CommandArguments arguments, const Streams& streams);
int command_validate(CommandArguments arguments, const Streams& streams);
int command_explain(CommandArguments arguments, const Streams& streams);
int command_eval(CommandArguments arguments, const Streams& streams);
int command_predict(CommandArguments arguments, const Streams& streams);
int command_export(CommandArguments arguments, const Streams& streams);
int command_report(CommandArguments arguments, const Streams& streams);
int command_runs(CommandArguments arguments, const Streams& streams);
int command_diff(CommandArguments arguments, const Streams& streams);
int command_collectives(CommandArguments arguments, const Streams& streams);
int command_exec(CommandArguments arguments, const Streams& streams);
int command_bench(CommandArguments arguments, const Streams& streams);
int command_sweep(CommandArguments arguments, const Streams& streams);
int command_devices(CommandArguments arguments, const Streams& streams);
int command_preflight(CommandArguments arguments, const Streams& streams);
int command_init(CommandArguments arguments, const Streams& streams);
int command_tokenize(CommandArguments arguments, const Streams& streams);
int command_schema(CommandArguments arguments, const Streams& streams);
int command_completion(CommandArguments arguments, const Streams& streams);
int command_help(CommandArguments arguments, const Streams& streams);

struct Command {
  std::string_view name, usage, summary;
  int (*call)(CommandArguments arguments, const Streams& streams);
  std::string_view subcommands = {};  // "run show best": each takes options of its own
  bool in_processes = false;          // whether all processes of a launcher run it, not only the first
};
std::span<const Command> commands();

// What all commands take, as their own --help describes it.
ProgramSyntax program_syntax();

// What `pmaptrain` alone prints, for a terminal of `columns` columns; 0: there is none.
std::string overview(int columns);
// The part of it that says what the program does, and shows a first run.
std::string introduction();

// The whole program but its handling of standard streams: `arguments` without the program's name. Prints errors, as a
// JSON document on `out` where --json is among the arguments, and returns the exit status.
int run_program(CommandArguments arguments, const Streams& streams);

}  // namespace pmaptrain::app
