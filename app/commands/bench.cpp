// bench: how fast a config's steps are here.
#include <fmt/format.h>

#include <cmath>

#include "app/commands/commands.h"
#include "app/options/arguments.h"
#include "app/options/config_options.h"
#include "core/base/text.h"
#include "core/report/benchmark.h"
#include "core/report/json.h"
#include "core/setup/make_setup.h"

namespace pmaptrain::app {
namespace {

constexpr int losses_in_json = 3;

report::Json load_seconds(const report::Benchmark& b) {
  report::Json seconds{{"planning", b.planning_seconds}, {"loading", b.loading_seconds}};
  for (const LoadTime& part : b.load_times) seconds[part.what] = part.seconds;
  return seconds;
}

report::Json to_json(const report::Benchmark& b, const spec::Spec& spec) {
  return {{"steps", b.steps},
          {"step_seconds", {{"median", b.median_step_seconds}, {"min", b.min_step_seconds}}},
          {"examples_per_second", b.examples_per_second},
          {"first_step_seconds", b.first_step_seconds},
          {"load_seconds", load_seconds(b)},
          {"losses", b.losses},
          {"peak_rss_bytes", b.peak_rss_bytes},
          {"flops_per_step", b.flops_per_step},
          {"precision", spec::to_string(spec.precision)},
          {"logical_devices", spec.mesh.mesh.devices()},
          {"workers", b.workers},
          {"machine",
           {{"gemm_flops_per_second", b.peaks.gemm_flops_per_second},
            {"copy_bytes_per_second", b.peaks.copy_bytes_per_second}}},
          {"share_of_gemm_peak", b.share_of_gemm_peak()}};
}

}  // namespace

int command_bench(CommandArguments arguments, const Streams& streams) {
  ConfigOptions config;
  std::optional<std::int64_t> steps;
  bool json = false;
  Arguments a("bench", "Times a config's training steps on one batch that stays in memory; writes nothing.");
  config.add_to(a);
  a.integer("--steps", "N", 1, steps, "number of timed steps (default: 200, or as many as fit into 0.2 seconds)");
  a.flag("--json", json, "print the figures as a JSON document");
  if (!a.parse(arguments, streams)) return 0;

  spec::Loaded loaded = spec::load(config.config, config.overrides);
  if (!json) print_notes(loaded.facts_and_notes(), streams);
  loaded.spec.data.token_cache = kept_tokens(config, loaded);
  const setup::Setup setup = setup::make_setup(std::move(loaded));
  const report::Benchmark b = report::benchmark(setup, steps, json ? losses_in_json : 1);
  if (json) {
    streams.out << report::to_text(to_json(b, setup.spec()));
    return 0;
  }
  const auto line = [&](std::string_view what, const std::string& figure) {
    streams.out << for_reader(fmt::format("{:<22}{}\n", what, figure), streams);
  };
  const std::string carried = counted(b.workers, b.on_gpus ? "GPU" : "worker");
  streams.out << for_reader(
      fmt::format("{}: {}, {}\n", setup.spec().name, counted(setup.mesh().devices(), "logical device"), carried),
      streams);
  line("step, median", with_prefix(b.median_step_seconds, "s") + " over " + counted(b.steps, "step"));
  line("step, minimum", with_prefix(b.min_step_seconds, "s"));
  line("examples per second", with_commas(std::llround(b.examples_per_second)));
  line("first step done", with_prefix(b.first_step_seconds, "s") + " after the start of the process");
  line("peak memory", human_bytes(b.peak_rss_bytes));
  line("FLOPs of a step", with_prefix(b.flops_per_step, "FLOP"));
  line("peak GEMM", with_prefix(b.peaks.gemm_flops_per_second, "FLOP/s") +
                        fmt::format(", of which a step reaches {:.1f} %", 100 * b.share_of_gemm_peak()));
  line("memory bandwidth", with_prefix(b.peaks.copy_bytes_per_second, "B/s"));
  return 0;
}

}  // namespace pmaptrain::app
