// pmaptrain_limits: what a training step costs at least on this machine. Nothing of the driver itself is measured here;
// its `bench` command is held against these figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/limits/linear_regression.h"
#include "bench/limits/peaks.h"
#include "bench/limits/primitives.h"
#include "core/base/error.h"

namespace pmaptrain::limits {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  bool json = false;
  double seconds = 1.0;
  int workers = 2;
  std::vector<std::string> only, networks;
  std::vector<std::int64_t> devices;

  bool wants(const std::string& part) const { return is_chosen(only, part); }
  bool wants_network(const std::string& name) const { return is_chosen(networks, name); }

 private:
  static bool is_chosen(const std::vector<std::string>& chosen, const std::string& name) {
    return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
  }
};

std::string microseconds(double seconds) { return fmt::format("{:.2f} µs", seconds * 1e6); }

template <class... Args>
void say(const Options& options, fmt::format_string<Args...> format, Args&&... args) {
  if (options.json) return;
  fmt::print(format, std::forward<Args>(args)...);
  std::fflush(stdout);
}

Json peaks(const Options& options) {
  Json found = Json::array();
  say(options, "Peaks\n");
  for (int workers = 1; workers <= options.workers; ++workers) {
    Team team(workers);
    const double gemm = gemm_flops_per_second(team, options.seconds);
    const double copy = copy_bytes_per_second(team, options.seconds);
    say(options, "  {} worker{}: matrix product {:.1f} GFLOP/s, copy {:.1f} GB/s (read + written)\n", workers,
        workers == 1 ? " " : "s", gemm * 1e-9, copy * 1e-9);
    found.push_back({{"workers", workers}, {"gemm_flops_per_second", gemm}, {"copy_bytes_per_second", copy}});
  }
  say(options, "\n");
  return found;
}

Json linear_regression(const Options& options) {
  Json found = Json::array();
  say(options, "Linear regression by hand, 100 examples x 5 features a device, one step\n");
  for (const Layout layout : {Layout::rows, Layout::columns}) {
    for (const int devices : {8, 64}) {
      for (int workers = 1; workers <= std::min(options.workers, 2); ++workers) {
        const Seconds step =
            measure({.devices = devices, .examples = 100, .workers = workers, .layout = layout}, options.seconds);
        const std::string_view name = layout == Layout::rows ? "rows" : "columns";
        say(options, "  {:2} devices, inputs by {:7}, {} worker{}: {:>9} (min {})\n", devices, name, workers,
            workers == 1 ? " " : "s", microseconds(step.median), microseconds(step.min));
        found.push_back({{"devices", devices},
                         {"workers", workers},
                         {"layout", name},
                         {"step_seconds", {{"median", step.median}, {"min", step.min}}}});
      }
    }
  }
  say(options, "\n");
  return found;
}

struct Measured {
  Network network;
  std::vector<std::int64_t> devices;
};

std::vector<Measured> measured_networks() {
  return {{cnn(), {8, 2, 64}},        {fashion_mnist(), {8, 2, 64}}, {mlp(), {8, 2}},
          {wide_mlp(), {2}},          {resnet18(), {8, 2}},          {in_bf16(cnn()), {2}},
          {in_bf16(wide_mlp()), {2}}, {in_bf16(resnet18()), {8, 2}}, {transformer(), {2}},
          {transformer_large(), {2}}, {in_bf16(transformer()), {2}}, {in_bf16(transformer_large()), {2}}};
}

Json primitives(const Options& options, Team& team, const Network& network, std::int64_t devices) {
  const NetworkTime time = measure(team, network, devices, options.seconds);
  say(options, "{}: the primitives of one step, batch {} as {} x {}, {} worker{}\n", network.name, network.batch,
      devices, network.batch / devices, team.size(), team.size() == 1 ? "" : "s");
  Json rows = Json::array();
  double flops = 0;
  for (const PrimitiveTime& primitive : time.primitives) {
    const double median = primitive.seconds.median;
    const std::string rate = primitive.flops > 0 ? fmt::format("{:.1f}", primitive.flops / median * 1e-9) : "-";
    say(options, "  {:44} {:>12} {:>8} GFLOP/s  {}\n", primitive.name, microseconds(median), rate,
        primitive.implementation);
    rows.push_back({{"name", primitive.name},
                    {"implementation", primitive.implementation},
                    {"seconds", {{"median", median}, {"min", primitive.seconds.min}}},
                    {"flops", primitive.flops}});
    flops += primitive.flops;
  }
  say(options, "  {:44} {:>12} {:>8.1f} GFLOP/s  (sum of the minima {})\n\n", "sum", microseconds(time.seconds.median),
      flops / time.seconds.median * 1e-9, microseconds(time.seconds.min));
  Json found{{"network", network.name},
             {"batch", network.batch},
             {"devices", devices},
             {"workers", team.size()},
             {"seconds", {{"median", time.seconds.median}, {"min", time.seconds.min}}},
             {"flops", flops},
             {"primitives", rows}};
  if (time.parameters > 0) found["parameters"] = time.parameters;
  return found;
}

int run(const Options& options) {
  Json document;
  if (options.wants("peaks")) document["peaks"] = peaks(options);
  if (options.wants("linear_regression")) document["linear_regression"] = linear_regression(options);
  if (options.wants("primitives")) {
    Team team(options.workers);
    Json networks = Json::array();
    for (const Measured& measured : measured_networks()) {
      if (!options.wants_network(measured.network.name)) continue;
      if (measured.network.bf16 && !has_bf16_instructions()) {
        if (options.networks.empty()) continue;
        fail_running("no primitives of " + measured.network.name + ": this CPU has no bf16 instructions");
      }
      for (const std::int64_t devices : options.devices.empty() ? measured.devices : options.devices) {
        networks.push_back(primitives(options, team, measured.network, devices));
      }
    }
    document["primitives"] = networks;
  }
  if (options.json) fmt::print("{}\n", document.dump(2));
  return 0;
}

}  // namespace
}  // namespace pmaptrain::limits

int main(int argc, char** argv) {
  pmaptrain::limits::Options options;
  CLI::App app("What a training step costs at least on this machine", "pmaptrain_limits");
  app.add_flag("--json", options.json, "Print one JSON document instead of tables");
  app.add_option("--seconds", options.seconds, "About how long each figure is measured")->check(CLI::Range(0.01, 60.0));
  app.add_option("--workers", options.workers, "Threads; at most as many as there are idle cores")
      ->check(CLI::IsMember({1, 2}));
  app.add_option("--only", options.only, "Measure just these parts")
      ->check(CLI::IsMember({"peaks", "linear_regression", "primitives"}));
  std::vector<std::string> names;
  for (const auto& measured : pmaptrain::limits::measured_networks()) names.push_back(measured.network.name);
  app.add_option("--network", options.networks, "Of the networks, measure just these")->check(CLI::IsMember(names));
  app.add_option("--devices", options.devices, "Measure networks on so many devices; may repeat")
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  try {
    return pmaptrain::limits::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "pmaptrain_limits: {}\n", error.what());
    return 1;
  }
}
