// preflight: what the processes of a launcher are, how fast they send, and what differs.
#include "core/report/preflight.h"

#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/setup/make_setup.h"
#include "core/setup/processes.h"
#include "core/setup/setup.h"

namespace pmaptrain::app {
namespace {

// Reads the data of a config, as a run would. What cannot be read in one process is told of that process.
void read_data(spec::Loaded loaded, report::ProcessFacts& facts) {
  try {
    facts.data = setup::data_identity(setup::make_setup(std::move(loaded)));
  } catch (const Error& error) {
    if (error.status() != ExitStatus::data) throw;
    facts.data_error = error.diagnostics().front().message;
  }
}

}  // namespace

int command_preflight(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  std::optional<std::string> path;
  bool json = false;
  Arguments a(
      "preflight",
      "Checks the processes that mpirun or srun has started, before a run: what they are, how fast they compute "
      "and send, and whether their clocks, programs and instruction sets are alike. Names what is slow, that "
      "is more than three times the median, and what is different.");
  a.optional_positional("CONFIG", path, "a YAML file, or a run folder: its data must be readable in every process");
  a.flag("--json", json, "print it as a JSON document");
  config.add_options_to(a);
  a.footer(
      "The exit status is 1 if a run would be refused because processes differ, or cannot read the data. What is slow\n"
      "is a warning.\n");
  if (!a.parse(arguments, streams)) return 0;
  report::ProcessFacts facts = report::facts_of_this_process();
  if (path) {
    config.config = *path;
    config.overrides.processes = processes_of(streams);
    read_data(load_config(config, streams), facts);
  }
  Agreement alone;
  const report::Preflight found = report::examine(streams.job != nullptr ? *streams.job : alone, facts);
  streams.out << (json ? report::preflight_json(found) : for_reader(report::preflight_text(found), streams));
  for (const report::Finding& finding : found.findings) {
    if (finding.is_error) return static_cast<int>(ExitStatus::failed);
  }
  return 0;
}

}  // namespace pmaptrain::app
