// validate: check a config, its data and its plan; run nothing.
#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/report/json.h"
#include "core/report/plan_report.h"
#include "core/setup/make_setup.h"

namespace pmaptrain::app {

int command_validate(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  bool json = false, print_config = false;
  Arguments a("validate",
              "Checks a config, the headers of its data and its plan, and shows what a run would do: layers, sharding, "
              "communication, memory, steps. Runs no step.");
  config.add_to(a);
  a.flag("--json", json, "print the plan as a JSON document");
  a.flag("--print-config", print_config, "print the resolved config instead, with all defaults");
  if (!a.parse(arguments, streams)) return 0;

  config.overrides.processes = processes_of(streams);
  spec::Loaded loaded = spec::load(config.config, config.overrides);
  loaded.spec.data.token_cache = kept_tokens(config, loaded);
  const setup::Setup setup = setup::make_setup(std::move(loaded));
  const report::ValidateReport report = report::make_validate_report(setup, false, processes_of(streams));
  if (!json) print_warnings(report.warnings, streams);
  if (json) {
    streams.out << report::validate_json(setup, report, print_config);
  } else if (print_config) {
    streams.out << setup.loaded.resolved;
  } else {
    streams.out << for_reader(report::validate_text(setup, report, display::text_columns(streams.out_fd)), streams);
  }
  return 0;
}

}  // namespace pmaptrain::app
