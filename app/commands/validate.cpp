// validate: check a config, its data and its plan; run nothing.
#include <cstdint>
#include <optional>
#include <string>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/error.h"
#include "core/report/json.h"
#include "core/report/plan_report.h"
#include "core/report/plans.h"
#include "core/setup/make_setup.h"

namespace pmaptrain::app {
namespace {

// A mesh of more devices is refused in configs too late to be of help here.
constexpr std::int64_t most_planned_devices = 65536;

void check_plan_options(bool plans, bool print_config, std::optional<std::int64_t> devices,
                        std::optional<std::int64_t> per_host) {
  if (devices && *devices > most_planned_devices) {
    fail_option("--plan-devices", std::to_string(*devices), "--plans divides at most 65,536 devices",
                "a number such as 512");
  }
  if (devices && !plans) {
    fail_option("--plan-devices", std::to_string(*devices), "--plan-devices is for --plans", "add --plans");
  }
  if (per_host && !plans) {
    fail_option("--devices-per-host", std::to_string(*per_host), "--devices-per-host is for --plans", "add --plans");
  }
  if (plans && print_config) {
    throw Error(ExitStatus::usage, Diagnostic{"usage",
                                              {},
                                              "--plans prints the keys of the best division, not the config",
                                              "leave out one of --plans and --print-config",
                                              {}});
  }
}

}  // namespace

int command_validate(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  bool json = false, print_config = false, plans = false;
  std::optional<std::int64_t> plan_devices, devices_per_host;
  Arguments a("validate",
              "Checks a config, the headers of its data and its plan, and shows what a run would do: layers, sharding, "
              "communication, memory, steps. Runs no step.");
  config.add_to(a);
  a.flag("--json", json, "print the plan as a JSON document");
  a.flag("--print-config", print_config, "print the resolved config instead, with all defaults");
  a.flag("--plans", plans,
         "compare how devices may divide the model and its batch over data, shards (parallelism.fsdp) and layers "
         "(parallelism.tensor), and show the best; mesh.gpu_memory is the memory of a device");
  a.integer("--plan-devices", "N", 1, plan_devices, "how many devices --plans divides; default: those of mesh.axes");
  a.integer("--devices-per-host", "H", 1, devices_per_host,
            "how many neighbouring devices one host has, for --plans; default: 8");
  if (!a.parse(arguments, streams)) return 0;
  check_plan_options(plans, print_config, plan_devices, devices_per_host);

  config.overrides.processes = processes_of(streams);
  spec::Loaded loaded = spec::load(config.config, config.overrides);
  loaded.spec.data.token_cache = kept_tokens(config, loaded);
  if (plans) {
    const report::Plans made = report::make_plans(
        loaded, {plan_devices.value_or(loaded.spec.mesh.mesh.devices()), devices_per_host.value_or(8)});
    const std::string text =
        json ? report::plans_json(made) : report::plans_text(made, display::text_columns(streams.out_fd));
    streams.out << (json ? text : for_reader(text, streams));
    return 0;
  }
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
