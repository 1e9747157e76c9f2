// A run that several processes carry leaves what one process leaves; all stop after the same step.
#include "core/setup/processes.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/setup/values.h"
#include "tests/catch.h"
#include "tests/session_run.h"
#include "tests/train/in_processes.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// What a test sets in the options of a process.
using Options = std::function<void(int process, setup::Setup& setup, train::SessionOptions& options)>;

Ends train_in_processes(const setup::Setup& setup, int processes, const Options& change, const TemporaryFolder& root) {
  return testing::train_in_processes(processes, root / "run",
                                     [&](int process, Agreement&, train::SessionOptions& options) {
                                       setup::Setup own = setup;
                                       if (change) change(process, own, options);
                                       return own;
                                     });
}

Ends train_in_processes(const setup::Setup& setup, int processes, const Options& change = {}) {
  const TemporaryFolder root;
  return train_in_processes(setup, processes, change, root);
}

bool has_blocks(const setup::Setup& setup, int blocks) {
  return spec::member_mesh(setup.spec()).devices() % blocks == 0;
}

void check_same(setup::Setup setup, int blocks, KernelChoice kernels = KernelChoice::best) {
  if (!has_blocks(setup, blocks)) return;
  setup.loaded.spec.mesh.blocks = blocks;
  train::SessionOptions alone;
  alone.kernels = kernels;
  const Trained expected = train_setup(setup, alone);
  REQUIRE_FALSE(expected.metrics.empty());
  for (const int processes : {2, 3, 4, 8}) {
    if (processes > blocks) continue;
    INFO(processes << " processes, " << blocks << " blocks");
    const Ends ends =
        train_in_processes(setup, processes, [&](int process, setup::Setup& own, train::SessionOptions& options) {
          own.loaded.spec.mesh.workers = 1 + process % 2;
          options.kernels = kernels;
        });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    CHECK(ends.trained.same_bits(expected));
    CHECK(ends.trained.ended.reason == expected.ended.reason);
    for (const run::Ended& ended : ends.ended) CHECK(ended.exit_status == expected.ended.exit_status);
  }
}

}  // namespace

TEST_CASE("every shipped config leaves the same bits on any number of processes", "[train][placements]") {
  for (const std::string& config : shipped_configs()) {
    INFO(config);
    const setup::Setup setup = shortened(config, KernelChoice::best);
    for (const int blocks : {2, 4, 8}) check_same(setup, blocks);
  }
}

TEST_CASE("masks, microbatches, bf16, ensembles, gathered metrics and evaluations leave the same bits on processes",
          "[train][placements]") {
  const std::vector<std::vector<std::string>> variations = {
      {"data.microbatches=2"},
      {"data.augment=[random_flip, mixup: {alpha: 0.4}]"},
      {"data.batch_size=10", "data.remainder=mask", "data.microbatches=3"},
      {"data.batch_size=3", "data.remainder=mask"},
      {"model.layers=[flatten, {dense: 8}, {dropout: 0.4}, gelu, {dense: 3}]", "train.ema={decay: 0.9}"},
      {"mesh.axes=[{a: 2}, {b: 2}]", "precision=mixed_bfloat16"},
      {"mesh.axes=[{a: 2}, {b: 4}]", "ensemble={axis: a, vary: {seed: [0, 1]}}"},
      {"metrics=[accuracy, confusion_matrix]", "train.eval_every=2 steps"},
      {"train.checkpoint={every: 1 step, best: {metric: loss}}", "train.eval_every=1 step",
       "train.early_stopping={metric: loss, patience: 1, min_delta: 10}", "train.duration=9 steps"},
      {"train.checkpoint={every: 1 step, best: {metric: loss}}", "train.eval_every=1 step", "data.validation=0.25"},
      {"mesh.axes=[{a: 2}, {b: 4}]", "ensemble={axis: a, vary: {seed: [0, 1]}}", "data.validation=0.25",
       "train.checkpoint={every: 1 step, best: {metric: loss}}", "train.eval_every=1 step"},
      {"optimizer.clip_by_global_norm=0.1", "optimizer.learning_rate={cosine_decay: {init_value: 0.1}}"},
  };
  for (const std::vector<std::string>& set : variations) {
    INFO(set.front());
    check_same(setup_of_text(small_images, set), 4);
  }
}

TEST_CASE("a signal to one process stops all after the same step, with one checkpoint", "[train][placements]") {
  setup::Setup setup = setup_of_text(small_images, {"train.duration=50 steps", "mesh.blocks=4"});
  for (const int told : {0, 2}) {
    INFO("process " << told);
    std::atomic<int> stop = 0;
    const Ends ends = train_in_processes(setup, 3, [&](int process, setup::Setup&, train::SessionOptions& options) {
      if (process != told) return;
      options.stop = &stop;
      options.between_steps = [&](Module&, std::int64_t step) {
        if (step == 4) stop = SIGTERM;
      };
    });
    for (const run::Ended& ended : ends.ended) {
      CHECK(ended.reason == "signal");
      CHECK(ended.exit_status == 128 + SIGTERM);
      CHECK(ended.members.front().steps == ends.ended.front().members.front().steps);
    }
    train::SessionOptions alone;
    alone.max_steps = ends.ended.front().members.front().steps;
    CHECK(train_setup(setup, alone).parameters == ends.trained.parameters);
  }
}

TEST_CASE("copies are compared over all processes, and damage in one process stops all", "[train][placements]") {
  const setup::Setup setup = setup_of_text(small_images, {"mesh.axes=[{a: 2}, {b: 2}]", "train.duration=5 steps",
                                                          "mesh.blocks=4", "train.log_every=1 step"});
  const Trained expected = train_setup(setup);
  for (const int processes : {2, 3, 4}) {
    for (const std::int64_t damaged : {-1, 0, 3}) {
      INFO(processes << " processes, damage on device " << damaged);
      const Ends ends = train_in_processes(setup, processes, [&](int, setup::Setup&, train::SessionOptions& options) {
        options.verify_replicas = true;
        options.between_steps = [=](Module& module, std::int64_t step) {
          const Handle bias = module.input("dense_0.bias");
          if (step != 2 || damaged < 0 || !module.has(bias, damaged)) return;
          std::vector<std::byte> bytes = setup::bytes_of(module, bias, damaged);
          bytes[2] ^= std::byte{1};
          module.wait(module.write(bias, damaged, bytes));
        };
      });
      for (const std::string& failure : ends.failures) CHECK(failure.empty());
      for (const run::Ended& ended : ends.ended) {
        CHECK(ended.exit_status == (damaged < 0 ? 0 : 5));
        CHECK(ended.members.front().steps == (damaged < 0 ? 5 : 2));
      }
      if (damaged < 0) {
        CHECK(ends.trained.same_bits(expected));
        continue;
      }
      const std::string words = ends.trained.of<run::Warned>().back().text;
      CHECK(words.starts_with("step 2: parameter 'dense_0.bias' differs on device " + std::to_string(damaged) + ";"));
    }
  }
}

TEST_CASE("a copy that alone is not finite ends all processes as a difference", "[train][placements]") {
  const setup::Setup setup = setup_of_text(
      small_images, {"mesh.axes=[{a: 2}, {b: 2}]", "train.duration=6 steps", "mesh.blocks=4", "train.log_every=1 step",
                     "train.verify_replicas=100 steps", "optimizer.learning_rate=1e30"});
  const Ends ends = train_in_processes(setup, 2, [&](int, setup::Setup&, train::SessionOptions& options) {
    options.between_steps = [](Module& module, std::int64_t step) {
      const Handle slot = module.input("adam.nu/dense_0.bias");
      if (step != 1 || !module.has(slot, 3)) return;
      const std::vector<float> wrong(3, std::numeric_limits<float>::infinity());
      module.wait(module.write(slot, 3, std::as_bytes(std::span(wrong))));
    };
  });
  for (const std::string& failure : ends.failures) CHECK(failure.empty());
  for (const run::Ended& ended : ends.ended) CHECK(ended.exit_status == 5);
  const std::string words = ends.trained.of<run::Warned>().back().text;
  INFO(words);
  CHECK(words.find("differs on device 3;") != std::string::npos);
}

TEST_CASE("the time of one process being over stops all", "[train][placements]") {
  setup::Setup setup = setup_of_text(small_images, {"train.duration=100000 steps", "mesh.blocks=2"});
  const Ends ends = train_in_processes(setup, 2, [&](int process, setup::Setup&, train::SessionOptions& options) {
    if (process == 1) options.max_time = spec::Duration{1, spec::Unit::seconds, {}};
  });
  for (const run::Ended& ended : ends.ended) CHECK(ended.reason == "max_time");
  CHECK(ends.ended[0].members.front().steps == ends.ended[1].members.front().steps);
}

TEST_CASE("processes with different data are refused, and the file and the first process are named",
          "[train][placements]") {
  setup::Setup setup = setup_of_text(small_images, {"mesh.blocks=4"});
  setup.contents = {{"data.source.npz.file", "/data/d.npz", 1234, {}, "0123", ""}};
  const Ends ends = train_in_processes(setup, 4, [&](int process, setup::Setup& own, train::SessionOptions&) {
    if (process >= 2) own.contents.front().hash = "4567";
  });
  for (const std::string& failure : ends.failures) {
    CHECK(failure == "the data '/data/d.npz' (data.source.npz.file) of process 2 is not that of process 0");
  }
}

TEST_CASE("processes with different configs are refused, and the first that differs is named", "[train][placements]") {
  const setup::Setup setup = setup_of_text(small_images, {"mesh.blocks=4"});
  const Ends ends = train_in_processes(setup, 4, [&](int process, setup::Setup& own, train::SessionOptions&) {
    if (process >= 2) own.loaded.resolved += "# another\n";
  });
  for (const std::string& failure : ends.failures) CHECK(failure == "the config of process 2 is not that of process 0");
}

TEST_CASE("the keys in which the configs of processes differ are named with both values", "[train][placements]") {
  const auto config = [](std::vector<std::string> set) {
    set.emplace_back("mesh.blocks=4");
    return setup_of_text(small_images, set).loaded.resolved;
  };
  const std::string first = config({}), other = config({"seed=5", "optimizer.learning_rate=0.25"});
  test::MemoryTransport transport(3);
  std::vector<std::vector<Diagnostic>> told(3);
  test::on_each_process(transport, 3, [&](int process) {
    Agreement agreement({{process, 3}, &transport.end(process)});
    try {
      setup::check_processes(agreement, {}, {process == 1 ? other : first, "", "", "", {}});
    } catch (const Error& error) {
      agreement.fail(error.status());
      told[static_cast<std::size_t>(process)] = error.diagnostics();
    }
  });
  for (const std::vector<Diagnostic>& each : told) {
    REQUIRE(each.size() == 1);
    CHECK(each.front().message == "the config of process 1 is not that of process 0");
    CHECK(each.front().notes ==
          std::vector<std::string>{"seed: process 0 has 0, the other 5",
                                   "optimizer.learning_rate: process 0 has 0.01, the other 0.25"});
  }
}

namespace {

// Another dataset, which cannot be read after it was closed.
class Closing : public data::Dataset {
 public:
  Closing(std::shared_ptr<const data::Dataset> whole, const std::atomic<bool>& closed)
      : whole_(std::move(whole)), closed_(closed) {}
  std::int64_t size() const override { return whole_->size(); }
  data::Field input() const override { return whole_->input(); }
  data::Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (closed_) fail_data("example " + std::to_string(index) + " cannot be read", "");
    whole_->read(index, input, target);
  }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  const std::atomic<bool>& closed_;
};

}  // namespace

TEST_CASE("a step that was not finite ends all processes, also if one cannot read its batch again",
          "[train][placements]") {
  const setup::Setup setup =
      setup_of_text(small_images, {"train.duration=5 steps", "train.log_every=never", "mesh.blocks=4"});
  for (const int unreadable : {-1, 0, 2}) {
    INFO("process " << unreadable << " reads nothing again");
    std::atomic<bool> closed = false;
    const Ends ends = train_in_processes(setup, 3, [&](int process, setup::Setup& own, train::SessionOptions& options) {
      if (process == unreadable) own.source.train = std::make_shared<Closing>(own.source.train, closed);
      options.between_steps = [&closed, is_closing = process == unreadable](Module& module, std::int64_t step) {
        if (step == 2) {
          const Handle bias = module.input("dense_0.bias");
          const std::vector<float> wrong(3, std::numeric_limits<float>::quiet_NaN());
          module.wait(module.write(bias, {every_device, every_member}, std::as_bytes(std::span(wrong))));
        }
        if (is_closing && step == 5) closed = true;  // all batches have been read
      };
    });
    for (const std::string& failure : ends.failures) CHECK(failure.empty());
    for (const run::Ended& ended : ends.ended) {
      CHECK(ended.exit_status == 5);
      CHECK(ended.members.front().steps == 2);
    }
    CHECK(
        ends.trained.of<run::Warned>().back().text.starts_with("step 3: the loss, the gradient or the update is not"));
  }
}

TEST_CASE("a process that cannot read its data ends the others, and what was trained is saved", "[train][placements]") {
  setup::Setup setup = setup_of_text(small_images, {"train.duration=50 steps", "mesh.blocks=4"});
  const Ends ends = train_in_processes(setup, 4, [&](int process, setup::Setup& own, train::SessionOptions&) {
    if (process == 2) own.source.train = std::make_shared<UnreadableAfter>(own.source.train, 41);
  });
  CHECK(ends.failures[2].find("cannot be read") != std::string::npos);
  for (const int process : {0, 1, 3}) {
    CHECK(ends.failures[static_cast<std::size_t>(process)] == "process 2 has failed");
  }
}
