#include "core/sweep/runner.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <utility>

#include "core/base/json.h"
#include "core/base/machine.h"
#include "core/kernel/in_f32.h"
#include "core/report/json.h"
#include "core/setup/processes.h"

namespace pmaptrain::sweep {
namespace {

using report::Json;

std::string text_of(const RunnerFacts& facts) {
  return json_text({{"host", facts.host},
                    {"gpus", facts.gpus},
                    {"cores", facts.cores},
                    {"quota", facts.quota},
                    {"memory", facts.memory}});
}

RunnerFacts facts_from(const std::string& text) {
  const Json json = parse_json(text);
  return {json["host"].get<std::string>(), json["gpus"].get<std::string>(), json["cores"].get<std::vector<int>>(),
          json["quota"].get<double>(), json["memory"].get<std::size_t>()};
}

}  // namespace

RunnerFacts own_facts() {
  const char* const gpus = std::getenv("CUDA_VISIBLE_DEVICES");
  return {host_name(), gpus != nullptr ? gpus : "", affinity(), cgroup_cores(), available_memory()};
}

std::vector<Runner> runners_of(std::span<const RunnerFacts> facts) {
  std::map<std::string, int> on_host;
  std::map<std::pair<std::string, int>, int> on_core;
  std::map<std::pair<std::string, std::string>, int> on_gpus;
  for (const RunnerFacts& one : facts) {
    ++on_host[one.host];
    for (const int core : one.cores) ++on_core[{one.host, core}];
  }
  std::vector<Runner> runners;
  for (const RunnerFacts& one : facts) {
    double cores = 0;
    for (const int core : one.cores) cores += 1.0 / on_core.at({one.host, core});
    Runner runner;
    runner.host = one.host;
    runner.sharers = on_host.at(one.host);
    // A third of a core three times is one.
    constexpr double rounding = 1e-6;
    runner.cores = static_cast<int>(std::floor(allowed_cores(cores, one.quota / runner.sharers) + rounding));
    if (facts.size() > 1) runner.memory = one.memory / static_cast<std::size_t>(runner.sharers);
    runner.has_gpus = on_gpus[{one.host, one.gpus}]++ == 0;
    runners.push_back(runner);
  }
  return runners;
}

std::vector<Runner> find_runners(Agreement* agreement) {
  std::vector<RunnerFacts> facts;
  if (agreement == nullptr || agreement->processes().placement.processes == 1) {
    facts.push_back(own_facts());
  } else {
    constexpr std::string_view help =
        "all processes that run trials need the same program and instruction set, so that a trial has the same bits in "
        "each";
    agreement->check_alike("the program", setup::program_identity(), help);
    agreement->check_alike("the instruction set", instruction_set(), help);
    for (const std::string& text : texts_of_all(agreement->processes(), text_of(own_facts()))) {
      facts.push_back(facts_from(text));
    }
  }
  return runners_of(facts);
}

}  // namespace pmaptrain::sweep
