// What random trees of layers become, in files, for scripts/compare_builds. Without that script the case does nothing.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/crc32c.h"
#include "core/runtime/gpu/division.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/gpu/gpus.h"
#include "tests/session_run.h"
#include "tests/step/random_runs.h"
#include "tests/train/in_processes.h"

namespace pmaptrain::testing {
namespace {

using Texts = std::vector<std::string>;

setup::Setup setup_of(const RandomRun& run, const Texts& set) {
  setup::Setup setup = setup_of_text(run.config, set);
  setup.warnings.clear();
  return setup;
}

Trained in_processes(int processes, const RandomRun& run, const Texts& set) {
  const TemporaryFolder root;
  Ends ends = train_in_processes(processes, root / "run",
                                 [&](int, Agreement&, train::SessionOptions&) { return setup_of(run, set); });
  for (const std::string& failure : ends.failures) CHECK(failure == "");
  return std::move(ends.trained);
}

// What a run has left: its tensors with their checksums, and its lines of metrics.
template <class Train>
std::string bits(int workers, const Train& train) {
  std::string text = fmt::format("{} of them\n", workers);
  try {
    const Trained trained = train();
    for (const run::Tensors* const tensors : {&trained.parameters, &trained.state}) {
      for (const auto& [name, tensor] : *tensors) {
        const std::string_view bytes(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
        text += fmt::format("{} {}[{}] {:08x}\n", name, to_string(tensor.dtype), fmt::join(tensor.shape, ","),
                            crc32c(bytes));
      }
    }
    return text + fmt::format("{}\n", fmt::join(trained.metrics, "\n"));
  } catch (const std::exception& error) {
    return std::string("error: ") + error.what() + "\n";
  }
}

std::string explained(const std::string& config, const Texts& set, const Texts& options = {}) {
  Texts arguments = {"explain", config};
  arguments.insert(arguments.end(), options.begin(), options.end());
  for (const std::string& option : set) arguments.insert(arguments.end(), {"--set", option});
  const tests::Finished told = tests::call(arguments);
  return told.status == 0 ? told.out : "error: " + told.err;
}

// The number of processes or GPUs is the `turn`-th of those that the blocks of the run allow.
void write_tree(const RandomRun& run, const std::string& path, int stage, std::uint32_t turn) {
  const auto write = [&](const char* kind, const std::string& text) {
    std::ofstream(fmt::format("{}.stage{}.{}", path, stage, kind)) << text;
  };
  const std::string config = path + ".yaml";
  Texts set;
  if (stage > 0) {
    set = {run.shards};
    set.front().at(set.front().find("stage: ") + 7) = static_cast<char>('0' + stage);
  }
  write("program", explained(config, set));
  write("plan", explained(config, set, {"--kernels"}));
  write("memory", explained(config, set, {"--memory"}));
  write("bits", bits(1, [&] { return train_setup(setup_of(run, set)); }));
  const int processes = 1 + static_cast<int>(turn % std::min(run.blocks, 4U));
  write("bits_of_processes", bits(processes, [&] { return in_processes(processes, run, set); }));

  const bool deterministic = turn / 4 % 2 == 0;
  std::vector<int> counts = gpu::possible_gpu_counts(setup_of(run, {}).spec().mesh.mesh, 4, gpu::Parts::any);
  if (deterministic) std::erase_if(counts, [&](int count) { return run.blocks % static_cast<unsigned>(count) != 0; });
  const int gpus = counts[turn % counts.size()];
  const test::WithGpus emulated(test::make_emulated({.devices = gpus}));
  set.insert(set.end(), {"mesh.backend=cuda", fmt::format("mesh.deterministic={}", deterministic),
                         fmt::format("mesh.workers={}", gpus)});
  write("gpu_plan", explained(config, set, {"--kernels"}));
  write("gpu_bits", bits(gpus, [&] { return train_setup(setup_of(run, set)); }));
}

}  // namespace

TEST_CASE("what random trees of layers become is written for scripts/compare_builds", "[gpu][.baseline]") {
  const char* const folder = std::getenv("PMAPTRAIN_BASELINE");
  const char* const trees = std::getenv("PMAPTRAIN_BASELINE_TREES");
  if (folder == nullptr || trees == nullptr) return;
  for (std::uint32_t seed = 0; seed < std::stoul(trees); ++seed) {
    const RandomRun run = RunWriter(seed).write();
    const std::string path = (std::filesystem::path(folder) / fmt::format("tree{}", seed)).string();
    std::ofstream(path + ".yaml") << run.config;
    for (int stage = 0; stage <= 3; ++stage) write_tree(run, path, stage, seed + static_cast<std::uint32_t>(stage));
  }
}

}  // namespace pmaptrain::testing
