// validate: check a config, its data and its plan; run nothing.
#include "app/arguments.h"
#include "app/commands.h"
#include "app/config_options.h"
#include "app/json.h"
#include "app/validate_report.h"

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
  if (!a.parse(arguments, streams.out)) return 0;

  const train::Setup setup = train::make_setup(spec::load(config.config, config.overrides));
  const ValidateReport report = make_validate_report(setup);
  if (!json) print_warnings(report.warnings, streams);
  if (json) {
    streams.out << validate_json(setup, report, print_config);
  } else {
    streams.out << (print_config ? setup.loaded.resolved : validate_text(setup, report));
  }
  return 0;
}

}  // namespace pmaptrain::app
