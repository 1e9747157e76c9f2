// The cases of tests/parity, whose losses and parameters JAX and Flax gave, on GPUs.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/graph/program.h"
#include "core/graph/text.h"
#include "core/setup/make_setup.h"
#include "core/setup/plan.h"
#include "core/spec/keys.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/gpu/gpus.h"
#include "tests/gpu/rounding.h"
#include "tests/parity/case.h"
#include "tests/parity/nodes.h"
#include "tests/session_run.h"
#include "tests/slice.h"

namespace pmaptrain::parity {
namespace {

// Four devices; or of the case's own layouts the one with the most devices that divide over the GPUs, if one does.
std::optional<RunShape> layout_on(int gpus, const std::string& name) {
  std::vector<RunShape> layouts = own_layouts(name);
  if (layouts.empty()) layouts = {{4, "{devices: 4}", 1}};
  std::erase_if(layouts, [&](const RunShape& layout) { return layout.devices % static_cast<std::size_t>(gpus) != 0; });
  const auto most = std::max_element(layouts.begin(), layouts.end(),
                                     [](const RunShape& a, const RunShape& b) { return a.devices < b.devices; });
  return most == layouts.end() ? std::nullopt : std::optional(*most);
}

Names keys_for(int gpus, bool deterministic) {
  return {"mesh.backend=cuda", "mesh.workers=" + std::to_string(gpus),
          std::string("mesh.deterministic=") + (deterministic ? "true" : "false")};
}

// How near a GPU has to be to JAX, whose sums have another order; products of f32 are those of f32 in both, TF32 is
// off.
//
// The chain of roundings of a step (tests/gpu/rounding.h) says how far its loss, metrics and gradient may be apart
// after one step, if the terms of its sums do not cancel: 1.5e-5 for dense layers, 6e-5 for convolutions. Cases are
// such that they do not: the CPU's are a thirtieth of that from JAX's. Each step adds as much to the parameters, which
// training that converges does not magnify, so the distance grows with the steps, and 1e-4 is its end: that of the CPU.
// Adam divides a gradient by its size, so where one is as small as the rounding of its sum, an update may be any; the
// loss does not depend on such parameters. After the first step no parameter is further than 1e-5: it moves by the
// rate, at most 0.1, times a gradient that is that near.
Nearness nearness_on_cuda(const setup::Setup& setup) {
  Nearness nearness;
  nearness.per_step = test::apart_by_order(test::longest_chain(*setup.training));
  return nearness;
}

setup::Setup setup_of_case(const std::string& name) {
  return setup::make_setup(spec::load((folder / "cases" / name / "config.yaml").string(), {}));
}

// The ops of a case's step, and the layers, losses and optimizers of its config.
std::set<std::string> parts_of(const std::string& name) {
  const std::string path = (folder / "cases" / name / "config.yaml").string();
  std::set<std::string> parts;
  const setup::Setup setup = setup_of_case(name);
  for_each_equation(setup.training->equations,
                    [&](const Equation& equation) { parts.insert("op " + std::string(equation.op.name())); });
  const std::string text = testing::read_text(path);
  for (const char* const choice : {"model.layers", "loss", "optimizer"}) {
    for (const spec::Key* const kind : spec::alternatives(*spec::find_key(choice))) {
      const std::regex word("\\b" + std::string(kind->name()) + "\\b");
      if (std::regex_search(text, word)) parts.insert(std::string(kind->path));
    }
  }
  return parts;
}

// Cases that together have every part which any case has: again and again the one with the most parts that are missing.
Names covering_cases() {
  std::map<std::string, std::set<std::string>> missing;  // by case
  for (const std::string& name : listed_cases()) missing[name] = parts_of(name);
  Names chosen;
  while (true) {
    const auto most = std::max_element(missing.begin(), missing.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (most->second.empty()) return chosen;
    chosen.push_back(most->first);
    const std::set<std::string> added = most->second;
    for (auto& [name, parts] : missing) {
      std::erase_if(parts, [&](const std::string& part) { return added.contains(part); });
    }
  }
}

}  // namespace

// On CUDA all cases on one GPU, and a set that covers them on 4. On emulated GPUs, where a step takes a hundred times
// as long, each case of that set on 1 or on 4, in turn.
DEVICE_TEST_CASE("losses, gradient norms and parameters on 1 and 4 GPUs are JAX's", "[gpu][one][several]") {
  const std::vector<int> counts = test::gpu_counts({1, 4});
  const auto check = [&](const std::string& name, int gpus) {
    const std::optional<RunShape> layout = layout_on(gpus, name);
    if (!layout || std::find(counts.begin(), counts.end(), gpus) == counts.end()) return;
    test::run_apart(name + " on " + std::to_string(gpus) + " GPUs", [&] {
      const test::WithGpus with(gpus);
      const Run run = train_case(name, *layout, keys_for(gpus, gpus == 4));
      const Nearness nearness = test::tests_use_cuda() ? nearness_on_cuda(setup_of_case(name)) : Nearness{};
      CHECK(differences(read_case(name), run, nearness) == Names{});
    });
  };
  const Names covering = covering_cases();
  CHECK(covering.size() >= 8);
  if (test::tests_use_cuda()) {
    for (const std::string& name : listed_cases()) check(name, 1);
    for (const std::string& name : covering) check(name, 4);
    return;
  }
  test::Turns turns;
  test::Slice slice(test::slices_with_sanitizer(5));
  for (const std::string& name : covering) {
    if (!slice.takes()) continue;
    for (const std::size_t four : turns.next(2)) check(name, four == 1 ? 4 : 1);
  }
}

TEST_CASE("what a GPU may be from JAX is more than the order of sums makes, and a thousandth of it is less", "[gpu]") {
  for (const std::string name : {"adam_defaults", "huber", "cnn", "attention", "batch_norm_over_devices"}) {
    INFO(name);
    const Run run = train_case(name, {1, "{devices: 1}", 1});  // on the CPU
    Nearness nearness = nearness_on_cuda(setup_of_case(name));
    CHECK(nearness.per_step < nearness.measures);
    CHECK(differences(read_case(name), run, nearness) == Names{});
    nearness.per_step /= 1000;
    CHECK(differences(read_case(name), run, nearness) != Names{});
  }
}

DEVICE_TEST_CASE("the loss of mixed precision on 1 and 4 GPUs is that of the same sums in JAX", "[gpu][one][several]") {
  const std::vector<int> counts = test::gpu_counts({1, 4});
  for (const std::string name : {"cnn", "mlp", "mlp_in_part"}) {
    const std::filesystem::path path = folder / "mixed" / name;
    const auto expected = nlohmann::json::parse(testing::read_text(path / "expected.json"))
                              .at("gpu_sums_loss")
                              .get<std::vector<double>>();
    for (const int gpus : counts) {
      test::run_apart(name + " on " + std::to_string(gpus) + " GPUs", [&] {
        const test::WithGpus with(gpus);
        spec::Overrides overrides;
        overrides.set = keys_for(gpus, false);
        overrides.set.emplace_back("mesh.axes={devices: 4}");
        const auto trained = testing::train_setup(setup::make_setup(spec::load(path / "config.yaml", overrides)));
        const auto logged = trained.of<run::Logged>();
        REQUIRE(logged.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
          // As tests/parity/mixed_precision.cpp compares them.
          CHECK(std::abs(logged[i].measures.front().second - expected[i]) <= 1e-3 * std::max(1.0, expected[i]));
        }
      });
    }
  }
}

DEVICE_TEST_CASE("ops on a GPU give what the node tests of ONNX expect", "[gpu][one]") {
  const test::WithGpus with(1);
  const auto backend = make_backend(BackendKind::cuda, {.workers = 1});
  const run::Tensors tensors = node_tensors();
  for (const auto& node : node_tests()) {
    test::run_apart(node.first, [&] {
      INFO(to_text(*node.second));
      const auto module = backend->load({{{"test", node.second, 1}}});
      CHECK(mistakes(node.first, tensors, *module) == Names{});
    });
  }
}

TEST_CASE("a step on GPUs whose kernels forget a barrier is not JAX's in one of the orders of threads", "[gpu]") {
  const auto found = [](const std::string& name, unsigned seed, int forgotten_barrier) {
    const test::WithGpus with(
        test::make_emulated({.devices = 1, .seed = seed, .forgotten_barrier = forgotten_barrier}));
    return differences(read_case(name), train_case(name, {1, "{devices: 1}", 1}, keys_for(1, true)));
  };
  // Clipping takes the norms of gradients; a bias and a loss have sums.
  const std::string name = "clip_by_global_norm";
  int wrong = 0;
  for (const unsigned seed : {0U, 1U, 2U}) {
    INFO("order " << seed);
    CHECK(found(name, seed, -1) == Names{});
    wrong += found(name, seed, 0).empty() ? 0 : 1;
  }
  CHECK(wrong > 0);
}

}  // namespace pmaptrain::parity
