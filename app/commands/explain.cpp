// explain: the program that a config becomes, its kernels and its memory.
#include <fmt/format.h>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/graph/text.h"
#include "core/report/columns.h"
#include "core/report/kernel_report.h"
#include "core/report/kernels.h"
#include "core/report/memory_report.h"
#include "core/report/parallelism.h"
#include "core/report/variables.h"
#include "core/setup/start.h"
#include "core/train/resources.h"

namespace pmaptrain::app {
namespace {

// Measures a module of one member with one batch.
std::string measured_kernels(const train::Setup& setup, const Backend& backend, int width) {
  Source source = train::step_source(setup);
  source.members = 1;  // each has the same plan
  const std::unique_ptr<Module> module = backend.load(std::move(source));
  train::set_initial_values(*module, setup);
  train::fill_first_batch(*module, setup);
  return report::kernels_text(report::measured_kernel_report(backend, *module), width);
}

std::string program_text(const spec::Spec& spec, const Program& program) {
  std::string text;
  if (const auto& ensemble = spec.ensemble) {
    text = fmt::format("# {} along axis '{}': each runs this program, that of one member, on {} of its own\n",
                       counted(spec::members(spec), "member"), ensemble->axis,
                       counted(program.mesh.devices(), "logical device"));
  }
  return text + to_text(program, {.origins = true});
}

std::string pools_text(const MemoryNeeds& needs, int workers, int width) {
  const auto bytes = [](std::size_t count) { return human_bytes(static_cast<double>(count)); };
  std::vector<std::vector<std::string>> rows{{"pool", "size", "copies", "bytes", ""}};
  for (const PoolReport& pool : needs.pools) {
    rows.push_back({pool.name, bytes(pool.bytes), std::to_string(pool.copies),
                    bytes(product_of(pool.bytes, pool.copies)), pool.meaning});
  }
  return fmt::format("pools, with {}:\n", counted(workers, "worker")) +
         report::columns(rows, {false, true, true, true, false}, width) + "\n";
}

}  // namespace

int command_explain(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  bool kernels = false, measure = false, memory = false, parallelism = false;
  std::optional<train::Stage> stage;
  Arguments a("explain",
              "Prints the program that a config becomes: one logical device's training step, each value with its type "
              "and, in braces, the axes over which it varies.");
  config.add_to(a);
  a.word(
      "--stage", {"model", "grad", "synchronised", "final"},
      [&stage](std::size_t i) { stage = static_cast<train::Stage>(i); },
      "model: one microbatch forward; grad: with its derivative; synchronised: summed over the devices and divided by "
      "the count, the easiest to read; final: with the update, optimised: what runs (the default)");
  a.flag("--kernels", kernels, "list the kernel behind each step of the plan, and what the step costs, instead");
  a.flag("--measure", measure, "with --kernels: run some steps, and show how long each kernel takes");
  a.flag("--parallelism", parallelism,
         "show how the work between two meetings of the workers is cut, and what more workers gain, instead");
  a.flag("--memory", memory, "show the plan's memory instead");
  if (!a.parse(arguments, streams)) return 0;
  if (stage.value_or(train::Stage::final) != train::Stage::final && (kernels || memory || parallelism)) {
    fail_usage("--kernels, --memory and --parallelism show the plan, which only the final stage has",
               "leave out --stage");
  }
  if (measure && !kernels) fail_usage("--measure is about kernels", "say --kernels --measure");

  const int processes = processes_of(streams);
  if (measure && processes > 1) fail_usage("--measure runs steps in one process", "leave out the launcher");
  config.overrides.processes = processes;
  const train::Setup setup = train::make_setup(spec::load(config.config, config.overrides));
  if (!kernels && !memory && !parallelism) {
    const bool what_runs = stage.value_or(train::Stage::final) == train::Stage::final;
    streams.out << program_text(setup.spec(), what_runs ? *setup.training : train::program_at(setup, *stage));
    return 0;
  }
  const train::PlannedSource run = train::plan_run(setup, false, KernelChoice::best, {{0, processes}});
  const Planned& planned = *run.planned;
  const train::MemoryEstimate estimate = train::estimate_memory(setup, planned.needs());
  train::check_memory(estimate, setup, *run.backend, planned.source());
  std::string text;
  if (!run.because.empty()) text += "carried by " + train::workers_text(run) + "\n\n";
  const int width = display::text_columns(streams.out_fd);
  if (memory) {
    text += pools_text(planned.needs(), planned.workers(), width) + "by what they hold:\n" +
            report::memory_text(estimate) + "\n" + report::variables_text(*setup.training, width);
  }
  if (parallelism) {
    text += (memory ? "\n" : "") + report::parallelism_text(planned.report(train::train_entry).stages, width);
  }
  if (kernels) {
    text += memory || parallelism ? "\n" : "";
    text += measure ? measured_kernels(setup, *run.backend, width)
                    : report::kernels_text(report::kernel_report(*run.backend, planned), width);
  }
  streams.out << for_reader(text, streams);
  return 0;
}

}  // namespace pmaptrain::app
