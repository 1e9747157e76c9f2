// Processes that divide the members of an ensemble leave what one process leaves.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/mesh/member_share.h"
#include "core/setup/plan.h"
#include "core/train/changes.h"
#include "core/train/resources.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

namespace pmaptrain::testing::divided_members {
namespace {

using Texts = std::vector<std::string>;
using Change = std::function<void(int process, setup::Setup& setup, train::SessionOptions& options)>;

const std::string two_lines = R"(seed: 4
mesh: {axes: {trials: 2}}
data: {source: {synthetic_linear: {features: 3, examples_per_device: 8}}, batch_size: 4}
model: {layers: [{dense: 5}, relu, {dense: 1}]}
loss: mean_squared_error
optimizer: {sgd: {momentum: 0.9}, learning_rate: 0.1}
train: {duration: 5 steps, log_every: 1 step, checkpoint: {every: 2 steps}}
ensemble: {axis: trials, vary: {seed: [5, 6]}}
)";

// Each member reads the examples in an order of its own, so it has batches of its own.
const std::string own_orders = R"(mesh: {axes: [{trials: 4}, {shards: 2}]}
data:
  source:
    values:
      inputs: [[1, 2], [2, 1], [3, 5], [4, 1], [0, 2], [1, 1], [2, 7], [3, 3]]
      targets: [[1], [2], [3], [1], [2], [0], [5], [1]]
  batch_size: 4
model: {layers: [{dense: 5}, gelu, {dense: 1}]}
loss: mean_squared_error
optimizer: {adam: {}, learning_rate: 0.1}
train: {duration: 7 steps, log_every: 2 steps, checkpoint: {every: 1 step}, loss_spike: {factor: 1000}}
ensemble: {axis: trials, vary: {data.seed: [3, 4, 5, 6]}}
)";

// Four members on two devices each, some with measures, masks, averages and selections of their own.
const Texts four_members = {"mesh.axes=[{trials: 4}, {shards: 2}]",
                            "ensemble={axis: trials, vary: {seed: [0, 1, 2, 3], "
                            "optimizer.learning_rate: [0.3, 0.01, 0.02, 0.005]}}"};

Ends train_divided(const setup::Setup& setup, int processes, const Change& change = {}) {
  const TemporaryFolder root;
  return train_in_processes(processes, root / "run", [&](int process, Agreement&, train::SessionOptions& options) {
    setup::Setup own = setup;
    own.loaded.spec.mesh.workers = 1 + process % 2;
    if (change) change(process, own, options);
    return own;
  });
}

void check_as_alone(const Ends& found, const Trained& expected) {
  for (const std::string& failure : found.failures) CHECK(failure == "");
  CHECK(found.trained.parameters == expected.parameters);
  CHECK(found.trained.state == expected.state);
  CHECK(found.trained.metrics == expected.metrics);
  for (const run::Ended& ended : found.ended) {
    CHECK(ended.exit_status == expected.ended.exit_status);
    CHECK(ended.reason == expected.ended.reason);
    REQUIRE(ended.members.size() == expected.ended.members.size());
    for (std::size_t m = 0; m < ended.members.size(); ++m) {
      CHECK(ended.members[m].steps == expected.ended.members[m].steps);
      CHECK(ended.members[m].reason == expected.ended.members[m].reason);
      CHECK(ended.members[m].final_measures == expected.ended.members[m].final_measures);
    }
  }
}

// Also with several workers, and for every number of processes that has a block for each process of a member.
void check_divided(const Texts& set, const std::string& text = small_images) {
  INFO(set.back());
  for (const int blocks : {1, 2}) {
    setup::Setup setup = setup_of_text(text, set);
    if (spec::member_mesh(setup.spec()).devices() % blocks != 0) continue;
    setup.loaded.spec.mesh.blocks = blocks;
    const Trained expected = train_setup(setup);
    REQUIRE_FALSE(expected.metrics.empty());
    for (const int processes : {2, 3, 4, 8}) {
      const MemberShare share(spec::members(setup.spec()), {0, processes});
      if (share.within_group().processes > blocks) continue;
      INFO(processes << " processes, " << blocks << " blocks");
      check_as_alone(train_divided(setup, processes), expected);
    }
  }
}

Texts with(Texts set, const Texts& more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}

}  // namespace

TEST_CASE("two members on two processes leave the bits of one process", "[train][placements][members]") {
  check_divided({"mesh.workers=1"}, two_lines);
}

TEST_CASE("members of an ensemble on processes leave the bits of one process, whatever they train",
          "[train][placements][members]") {
  const std::vector<Texts> variations = {
      {"data.microbatches=2"},
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {"mesh.axes=[{shards: 2}, {trials: 4}, {more: 2}]", "data.axes=[shards, more]"},
      {"model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]", "train.ema={decay: 0.9}"},
      {"metrics=[accuracy, confusion_matrix]", "train.eval_every=2 steps", "precision=mixed_bfloat16"},
      {"data.validation=0.25", "train.checkpoint={every: 1 step, best: {metric: loss}}", "train.eval_every=1 step",
       "train.ema={decay: 0.5}"},
      {"parallelism.fsdp={axis: shards, stage: 3}", "train.checkpoint.every=2 steps"},
  };
  for (const Texts& variation : variations) check_divided(with(four_members, variation));
  check_divided({"mesh.workers=1"}, own_orders);
}

TEST_CASE("processes exchange what they have measured of their members once for each evaluation",
          "[train][placements][members]") {
  // Of validation splits of two batches and of six: beside the exchange, processes agree before each batch. To exchange
  // each number of a batch would take 12 messages more for each.
  constexpr std::size_t batches = 2 * (6 - 2), agreement = 2;
  const auto messages = [](const std::string& examples, const std::string& eval_every) {
    const Ends found = train_divided(
        setup_of_text(small_images, with(four_members, {"data.source.synthetic_images.train=" + examples,
                                                        "data.validation=0.5", "train.log_every=100 steps",
                                                        "train.duration=3 steps", "train.eval_every=" + eval_every})),
        2);
    CHECK(found.failures == std::vector<std::string>(2));
    return found.messages;
  };
  const auto of_evaluations = [&](const std::string& examples) {
    return messages(examples, "1 step") - messages(examples, "100 steps");
  };
  CHECK(of_evaluations("192") - of_evaluations("64") < 2 * batches * agreement);
}

TEST_CASE("processes exchange a log line at once, however many measures and guards it has",
          "[train][placements][members]") {
  const auto messages = [](const Texts& more, const std::string& log_every) {
    const Texts lines = {"train.log_every=" + log_every, "train.duration=6 steps", "train.eval_every=never"};
    const Ends found = train_divided(setup_of_text(small_images, with(with(four_members, lines), more)), 2);
    CHECK(found.failures == std::vector<std::string>(2));
    return found.messages;
  };
  const auto of_lines = [&](const Texts& more) { return messages(more, "1 step") - messages(more, "100 steps"); };
  const std::size_t found = of_lines({});
  CHECK(of_lines({"metrics=[accuracy]"}) == found);
  CHECK(of_lines({"train.on_nonfinite=skip"}) == found);
  // For each line a message of each member with the guard's state, and one with its measures.
  CHECK(found <= 6 * 2 * 4);
}

TEST_CASE("a member in another process that stops early, or is not finite, ends as in one process",
          "[train][placements][members]") {
  check_divided(with(four_members, {"train.eval_every=1 step", "train.duration=12 steps",
                                    "train.checkpoint={every: 3 steps, best: {metric: loss}}",
                                    "train.early_stopping={metric: loss, patience: 1, min_delta: 0.05}"}));
  check_divided(with(four_members, {"train.duration=8 steps", "train.log_every=3 steps",
                                    "optimizer={sgd: {momentum: 0.9}, learning_rate: 0.1}",
                                    "ensemble.vary={optimizer.learning_rate: [0.1, 0.01, 3.0e+38, 0.02]}"}));
}

TEST_CASE("the warning about a member that is not finite has its replay, which another process made",
          "[train][placements][members]") {
  const setup::Setup setup = setup_of_text(
      small_images, with(four_members, {"train.duration=8 steps", "optimizer={sgd: {}, learning_rate: 0.1}",
                                        "ensemble.vary={optimizer.learning_rate: [0.1, 0.01, 3.0e+38, 0.02]}"}));
  const auto replayed = [](const Trained& trained) {
    for (const run::Warned& warned : trained.of<run::Warned>()) {
      if (warned.text.starts_with("member 2: step ")) return warned.text;
    }
    return std::string();
  };
  const std::string expected = replayed(train_setup(setup));
  CHECK_FALSE(expected.empty());
  CHECK(replayed(train_divided(setup, 4).trained) == expected);
}

TEST_CASE("an ensemble continues on another number of processes", "[train][placements][members]") {
  const bool has_own_orders = GENERATE(false, true);
  const Texts images = {"mesh.blocks=2", "train.duration=6 steps", "train.ema={decay: 0.5}",
                        "train.checkpoint={every: 1 step, best: {metric: loss}}", "train.eval_every=1 step"};
  const setup::Setup setup = has_own_orders ? setup_of_text(own_orders, {"mesh.blocks=2"})
                                            : setup_of_text(small_images, with(four_members, images));
  const Trained expected = train_setup(setup);
  for (const auto& [before, after] : {std::pair(4, 2), std::pair(1, 8), std::pair(8, 1), std::pair(2, 4)}) {
    INFO(before << " processes, then " << after);
    const TemporaryFolder root;
    train_in_processes(before, root / "run", [&](int, Agreement&, train::SessionOptions& options) {
      options.max_steps = 3;
      return setup;
    });
    std::vector<std::optional<train::ResumePoint>> points(static_cast<std::size_t>(after));
    const Ends ends =
        train_in_processes(after, root / "run", [&](int process, Agreement& agreement, train::SessionOptions& options) {
          const run::FirstProcess first(&agreement);
          std::optional<train::ResumePoint>& point = points[static_cast<std::size_t>(process)];
          point = train::find_resume_point(options.run_dir, first);
          if (!point) fail_usage("there is no checkpoint");
          options.resume = &*point;
          options.folder.resume = true;
          const run::RunState& state = point->checkpoint.state;
          options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
          return setup;
        });
    check_as_alone(ends, expected);
  }
}

TEST_CASE("a process needs the memory of its own members", "[train][placements][members]") {
  const setup::Setup setup = setup_of_text(small_images, four_members);
  const auto needs = [&](int processes) {
    return setup::plan_run(setup, false, KernelChoice::best, {{0, processes}}).planned->needs();
  };
  const MemoryNeeds alone = needs(1);
  CHECK(needs(2).parameters * 2 == alone.parameters);
  CHECK(needs(4).parameters * 4 == alone.parameters);
  CHECK(needs(4).optimizer * 4 == alone.optimizer);
  // Beside what libraries take: several processes also have one that carries messages.
  const auto own = [&](const MemoryNeeds& of) {
    const setup::MemoryEstimate estimate = train::estimate_memory(setup, of);
    return estimate.total() - estimate.kernels;
  };
  CHECK(own(needs(4)) < own(alone));
}

TEST_CASE("a signal to a process of one member stops all members after the same step", "[train][placements][members]") {
  const setup::Setup setup =
      setup_of_text(small_images, with(four_members, {"train.duration=50 steps", "train.checkpoint.every=5 steps"}));
  std::atomic<int> stop = 0;
  const Ends ends = train_divided(setup, 4, [&](int process, setup::Setup&, train::SessionOptions& options) {
    if (process != 2) return;
    options.stop = &stop;
    options.between_steps = [&](Module&, std::int64_t step) {
      if (step == 4) stop = SIGTERM;
    };
  });
  for (const std::string& failure : ends.failures) CHECK(failure == "");
  for (const run::Ended& ended : ends.ended) CHECK(ended.exit_status == 128 + SIGTERM);
  train::SessionOptions alone;
  alone.max_steps = ends.ended.front().members.front().steps;
  CHECK(train_setup(setup, alone).parameters == ends.trained.parameters);
}

TEST_CASE("a process of one member that cannot read its data ends the processes of the others",
          "[train][placements][members]") {
  const setup::Setup setup =
      setup_of_text(small_images, with(four_members, {"train.duration=50 steps", "train.checkpoint.every=2 steps"}));
  for (const int broken : {0, 2}) {
    INFO("process " << broken);
    const Ends ends = train_divided(setup, 4, [&](int process, setup::Setup& own, train::SessionOptions&) {
      if (process == broken) own.source.train = std::make_shared<UnreadableAfter>(own.source.train, 101);
    });
    for (int process = 0; process < 4; ++process) {
      const std::string& failure = ends.failures[static_cast<std::size_t>(process)];
      INFO(failure);
      CHECK((process == broken ? failure.ends_with("cannot be read")
                               : failure == "process " + std::to_string(broken) + " has failed"));
    }
  }
}

TEST_CASE("a run folder that is moved during the evaluations of divided members ends all processes",
          "[train][placements][members]") {
  const setup::Setup setup = setup_of_text(
      small_images,
      with(four_members, {"train.duration=50 steps", "train.log_every=1 step", "train.eval_every=1 step"}));
  const TemporaryFolder root;
  const Ends ends = train_in_processes(4, root / "run", [&](int process, Agreement&, train::SessionOptions& options) {
    if (process == 0) {
      options.between_steps = [&root](Module&, std::int64_t step) {
        if (step == 4) std::filesystem::rename(root / "run", root / "moved");
      };
    }
    return setup;
  });
  CHECK(ends.failures[0] != "");
  for (std::size_t process = 1; process < 4; ++process) CHECK(ends.failures[process] == "process 0 has failed");
}

TEST_CASE("a member that is not finite is replayed although its copies are in several processes",
          "[train][placements][members]") {
  const setup::Setup setup =
      setup_of_text(small_images, {"mesh.axes=[{trials: 2}, {shards: 4}]", "mesh.blocks=4", "train.duration=6 steps",
                                   "optimizer={sgd: {momentum: 0.9}, learning_rate: 0.1}",
                                   "ensemble={axis: trials, vary: {optimizer.learning_rate: [0.01, 3.0e+38]}}"});
  train::SessionOptions alone;
  alone.verify_replicas = true;
  const Trained expected = train_setup(setup, alone);
  REQUIRE(expected.ended.members[1].reason == "nonfinite");
  for (const int processes : {2, 4, 8}) {
    INFO(processes << " processes");
    check_as_alone(
        train_divided(setup, processes,
                      [](int, setup::Setup&, train::SessionOptions& options) { options.verify_replicas = true; }),
        expected);
  }
}

TEST_CASE("damage of a copy of one member stops that member alone", "[train][placements][members]") {
  const setup::Setup setup = setup_of_text(
      small_images, with(four_members, {"mesh.blocks=2", "train.duration=5 steps", "train.log_every=1 step"}));
  const auto damage = [](Module& module, std::int64_t step) {
    const Handle bias = module.input("dense_0.bias");
    if (step != 2 || !module.member_share().has(2) || !module.has(bias, 1)) return;
    const std::vector<float> wrong(3, 0.5F);
    module.wait(module.write(bias, {1, 2}, std::as_bytes(std::span(wrong))));
  };
  train::SessionOptions alone;
  alone.verify_replicas = true;
  alone.between_steps = damage;
  const Trained expected = train_setup(setup, alone);
  CHECK(expected.ended.members[2].reason == "replicas");
  for (const int processes : {2, 4, 8}) {
    INFO(processes << " processes");
    check_as_alone(train_divided(setup, processes,
                                 [&](int, setup::Setup&, train::SessionOptions& options) {
                                   options.verify_replicas = true;
                                   options.between_steps = damage;
                                 }),
                   expected);
  }
}

}  // namespace pmaptrain::testing::divided_members
