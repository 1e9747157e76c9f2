// explain: the program that a config becomes, its kernels and its memory.
#include <fmt/format.h>

#include "app/arguments.h"
#include "app/commands.h"
#include "app/config_options.h"
#include "app/explain_kernels.h"
#include "app/validate_report.h"
#include "core/base/saturate.h"
#include "core/base/text.h"
#include "core/graph/text.h"
#include "core/runtime/cpu/executor.h"
#include "core/train/kernel_report.h"
#include "core/train/setup.h"
#include "core/train/start.h"

namespace pmaptrain::app {
namespace {

// The executor is made as for a run, since the libraries choose when they see the shapes.
std::string explain_kernels(const train::Setup& setup, Plan plan, int workers, bool measure) {
  CpuExecutor executor(std::move(plan), {workers, KernelChoice::best});
  if (!measure) return kernels_text(train::kernel_report(executor), executor.plan(), workers);
  train::set_initial_values(executor, setup);
  train::feed_first_batch(executor, setup);
  return kernels_text(train::measured_kernel_report(executor), executor.plan(), workers);
}

std::string memory_text(const train::Setup& setup, const Plan& plan, int workers) {
  const auto bytes = [](std::size_t count) { return human_bytes(static_cast<double>(count)); };
  const PoolSizes& pools = plan.pools;
  const auto per_worker = static_cast<std::size_t>(workers);
  const std::int64_t together = pools.blocks_at_once(workers, static_cast<std::int64_t>(plan.blocks.size()));
  const auto at_once = static_cast<std::size_t>(together);
  const std::string blocks = together == 1 ? "one at a time" : std::to_string(together) + " at once";
  const std::size_t accumulators = 2 * plan.blocks.size();
  const auto row = [&](std::string name, std::size_t size, std::size_t copies, std::string what) {
    return std::vector<std::string>{std::move(name), bytes(size), std::to_string(copies),
                                    bytes(product_of(size, copies)), std::move(what)};
  };
  std::string out = fmt::format("pools, with {} workers and {} blocks of devices:\n", workers, plan.blocks.size());
  out += columns({{"pool", "size", "copies", "bytes", ""},
                  row("constants", pools.constants, 1, "filled once"),
                  row("shared", pools.shared, 1, "the same on every device, kept once for the process"),
                  row("devices", pools.devices, 1, "a slice for every device, kept through the step"),
                  row("worker", pools.worker, per_worker, "small and the same on every device"),
                  row("arena", pools.arena, per_worker * at_once, "scratch for a block; a worker has " + blocks),
                  row("accumulators", pools.accumulators, accumulators, "sums over a block's devices, kept twice")},
                 {false, true, true, true, false});
  const train::MemoryEstimate m = train::estimate_memory(setup, plan, workers);
  return out + "\nby what they hold, with the loader's batches:\n" +
         columns({{"parameters", bytes(m.parameters)},
                  {"optimizer state", bytes(m.optimizer)},
                  {"gradients", bytes(m.gradients)},
                  {"activations and other values on the way", bytes(m.activations)},
                  {"batches", bytes(m.batch)},
                  {"the kernel library's code and scratch", bytes(m.kernels)},
                  {"total", bytes(m.total)},
                  {"available", bytes(m.available)}},
                 {false, true});
}

}  // namespace

int command_explain(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  bool kernels = false, measure = false, memory = false;
  std::optional<train::Stage> stage;
  Arguments a("explain",
              "Prints the program that a config becomes: one logical device's training step, each value with its type "
              "and, in braces, the axes over which it varies.");
  config.add_to(a);
  a.word(
      "--stage", {"model", "grad", "final"}, [&stage](std::size_t i) { stage = static_cast<train::Stage>(i); },
      "model: one microbatch forward; grad: with its derivative; final: synchronised and updated, what runs (the "
      "default)");
  a.flag("--kernels", kernels, "list the kernel behind each step of the plan, and what the step costs, instead");
  a.flag("--measure", measure, "with --kernels: run some steps, and show how long each kernel takes");
  a.flag("--memory", memory, "show the plan's memory instead");
  if (!a.parse(arguments, streams.out)) return 0;
  if (stage.value_or(train::Stage::final) != train::Stage::final && (kernels || memory)) {
    fail_usage("--kernels and --memory show the plan, which only the final stage has", "leave out --stage");
  }
  if (measure && !kernels) fail_usage("--measure is about kernels", "say --kernels --measure");

  const train::Setup setup = train::make_setup(spec::load(config.config, config.overrides));
  if (!kernels && !memory) {
    const bool what_runs = stage.value_or(train::Stage::final) == train::Stage::final;
    streams.out << to_text(what_runs ? *setup.training : train::program_at(setup, *stage), {.origins = true});
    return 0;
  }
  const int workers = train::worker_count(setup.spec().mesh);
  const Plan plan = make_plan(setup.training, {setup.timetable.verify_every > 0});
  train::check_memory(train::estimate_memory(setup, plan, workers), setup);
  if (memory) streams.out << memory_text(setup, plan, workers);
  if (kernels) streams.out << (memory ? "\n" : "") << explain_kernels(setup, plan, workers, measure);
  return 0;
}

}  // namespace pmaptrain::app
