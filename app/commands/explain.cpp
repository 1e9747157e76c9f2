// explain: the program that a config becomes, its kernels and its memory.
#include <fmt/format.h>

#include <limits>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/base/wrap.h"
#include "core/graph/text.h"
#include "core/report/kernel_report.h"
#include "core/report/kernels.h"
#include "core/report/memory_report.h"
#include "core/report/parallelism.h"
#include "core/report/variables.h"
#include "core/setup/make_setup.h"
#include "core/setup/programs.h"
#include "core/setup/start.h"
#include "core/train/resources.h"

namespace pmaptrain::app {
namespace {

// Measures a module of one member with one batch.
std::string measured_kernels(const setup::Setup& setup, const Backend& backend, int width) {
  Source source = setup::step_source(setup);
  source.members = 1;  // each has the same plan
  const std::unique_ptr<Module> module = backend.load(std::move(source));
  setup::set_initial_values(*module, setup);
  setup::fill_first_batch(*module, setup);
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

// The program with the steps of rank 0 below each collective for which ranks send something.
std::string ranks_text(const setup::Setup& setup, const setup::PlannedSource& run, int processes) {
  const PlanReport report = run.planned->report(setup::train_entry);
  const auto note = [](const RankStep& step) {
    const bool sends = step.sent > 0 || step.received > 0;
    if (!sends) return fmt::format("{}: {}", step.what, counted(step.elements, "element"));
    return fmt::format("{}: sends {} bytes, receives {}", step.what, with_commas(static_cast<std::int64_t>(step.sent)),
                       with_commas(static_cast<std::int64_t>(step.received)));
  };
  PrintOptions options{.origins = true};
  options.notes = [&](const Equation& equation) {
    std::vector<std::string> notes;
    const auto steps = report.rank_steps.find(&equation);
    if (steps == report.rank_steps.end()) return notes;
    for (const RankStep& step : steps->second) notes.push_back(note(step));
    return notes;
  };
  const int ranks = processes * (run.backend->uses_gpus() ? run.planned->workers() : 1);
  return fmt::format("# rank 0 of {}: sends {} bytes in a step\n", ranks,
                     with_commas(static_cast<std::int64_t>(report.sent_bytes))) +
         to_text(report.program != nullptr ? *report.program : *setup.training, options);
}

std::string pools_text(const MemoryNeeds& needs, int workers, int width) {
  std::vector<std::vector<std::string>> rows{{"pool", "size", "copies", "bytes", ""}};
  for (const PoolReport& pool : needs.pools) {
    rows.push_back({pool.name, human_bytes(pool.bytes), std::to_string(pool.copies),
                    human_bytes(product_of(pool.bytes, pool.copies)), pool.meaning});
  }
  return fmt::format("pools, with {}:\n", counted(workers, "worker")) +
         in_columns(rows, {false, true, true, true, false}, width) + "\n";
}

}  // namespace

int command_explain(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  bool kernels = false, measure = false, memory = false, parallelism = false;
  std::optional<step::Stage> stage;
  bool ranks = false;
  std::optional<std::int64_t> of_processes;
  Arguments a("explain",
              "Prints the program that a config becomes: one logical device's training step, each value with its type "
              "and, in braces, the axes over which it varies.");
  config.add_to(a);
  a.word(
      "--stage", {"model", "grad", "synchronised", "final", "ranks"},
      [&](std::size_t i) {
        ranks = i == 4;
        stage = ranks ? step::Stage::final : static_cast<step::Stage>(i);
      },
      "model: one microbatch forward; grad: with its derivative; synchronised: summed over the devices and divided by "
      "the count, the easiest to read; final: with the update, optimised: what runs (the default); "
      "ranks: with what a process, or a GPU, sends and adds for each collective");
  a.integer("--processes", "N", 1, of_processes, "with --stage ranks: so many processes, without a launcher");
  a.flag("--kernels", kernels, "list the kernel behind each step of the plan, and what the step costs, instead");
  a.flag("--measure", measure, "with --kernels: run some steps, and show how long each kernel takes");
  a.flag("--parallelism", parallelism,
         "show how the work between two meetings of the workers is cut, and what more workers gain, instead");
  a.flag("--memory", memory, "show the plan's memory instead");
  if (!a.parse(arguments, streams)) return 0;
  if (stage.value_or(step::Stage::final) != step::Stage::final && (kernels || memory || parallelism)) {
    fail_usage("--kernels, --memory and --parallelism show the plan, which only the final stage has",
               "leave out --stage");
  }
  if (ranks && (kernels || memory || parallelism)) {
    fail_usage("--stage ranks shows a program, not the plan", "leave out --kernels, --memory and --parallelism");
  }
  if (of_processes && !ranks) fail_usage("--processes is for --stage ranks", "say --stage ranks --processes N");
  if (measure && !kernels) fail_usage("--measure is about kernels", "say --kernels --measure");

  if (of_processes.value_or(1) > std::numeric_limits<int>::max()) {
    fail_usage(fmt::format("--processes is {}, more than there can be", *of_processes), "say a smaller number");
  }
  const int processes = of_processes ? static_cast<int>(*of_processes) : processes_of(streams);
  if (measure && processes > 1) fail_usage("--measure runs steps in one process", "leave out the launcher");
  config.overrides.processes = processes;
  spec::Loaded loaded = spec::load(config.config, config.overrides);
  loaded.spec.data.token_cache = kept_tokens(config, loaded);
  const setup::Setup setup = setup::make_setup(std::move(loaded));
  if (!kernels && !memory && !parallelism && !ranks) {
    const bool what_runs = stage.value_or(step::Stage::final) == step::Stage::final;
    streams.out << program_text(setup.spec(), what_runs ? *setup.training : setup::program_at(setup, *stage));
    return 0;
  }
  const setup::PlannedSource run = setup::plan_run(setup, false, KernelChoice::best, {{0, processes}});
  if (ranks) {
    streams.out << ranks_text(setup, run, processes);
    return 0;
  }
  const Planned& planned = *run.planned;
  const setup::MemoryEstimate estimate = train::estimate_memory(setup, planned.needs());
  train::check_memory(estimate, setup, *run.backend, planned.source());
  std::string text;
  if (!run.because.empty()) text += "carried by " + setup::workers_text(run) + "\n\n";
  const int width = display::text_columns(streams.out_fd);
  if (memory) {
    text += pools_text(planned.needs(), planned.workers(), width) + "by what they hold:\n" +
            report::memory_text(estimate) + "\n" + report::variables_text(*setup.training, width);
  }
  if (parallelism) {
    text += (memory ? "\n" : "") + report::parallelism_text(planned.report(setup::train_entry).stages, width);
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
