// Signals that come before the first step, and while something other than a step is done.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

// Another dataset, which tells when an example is read.
class Watched : public data::Dataset {
 public:
  Watched(std::shared_ptr<const data::Dataset> whole, std::function<void()> tell)
      : whole_(std::move(whole)), tell_(std::move(tell)) {}
  std::int64_t size() const override { return whole_->size(); }
  data::Field input() const override { return whole_->input(); }
  data::Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (index == 0) tell_();
    whole_->read(index, input, target);
  }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  std::function<void()> tell_;
};

// Trains a setup, or continues what is there with it.
Trained continue_in(const fs::path& run, const setup::Setup& setup, train::SessionOptions options = {}) {
  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  if (point) {
    const run::RunState& state = point->checkpoint.state;
    CHECK_FALSE(train::find_finished(run, state, setup.spec().train, setup.timetable, std::nullopt));
    options.resume = &*point;
    options.folder.resume = true;
    options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  }
  return train_setup_in(run, setup, options);
}

}  // namespace

TEST_CASE("a run that a signal stops before its first step writes nothing and leaves an old run as it was", "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images);
  train_setup_in(root / "old", setup);
  const std::string before = test::listing(root / "old");
  for (const char* const name : {"old", "new"}) {
    std::atomic<int> stop = 0;
    train::SessionOptions options;
    options.run_dir = root / name;
    options.folder.overwrite = true;
    options.stop = &stop;
    Recording recording;
    run::Consumer* const consumer = &recording;
    train::Session session(setup, options);
    stop = SIGINT;
    const run::Ended ended = session.run({&consumer, 1});
    CHECK(ended.reason == "signal");
    CHECK(ended.exit_status == 128 + SIGINT);
    CHECK(ended.steps == 0);
    CHECK(ended.run_dir.empty());
    CHECK(recording.events.empty());
  }
  CHECK(test::listing(root / "old") == before);
  CHECK_FALSE(fs::exists(root / "new"));
}

TEST_CASE("a signal that comes while the folder is made still leaves a step and its checkpoint", "[train]") {
  class Stopping : public run::Consumer {
   public:
    explicit Stopping(std::atomic<int>& stop) : stop_(stop) {}
    void on(const run::Event&) override { stop_ = SIGTERM; }

   private:
    std::atomic<int>& stop_;
  };
  const TemporaryFolder root;
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.run_dir = root / "run";
  options.stop = &stop;
  Stopping consumer(stop);
  run::Consumer* const first = &consumer;
  const run::Ended ended = train::train(setup_of_text(small_images), options, {&first, 1});
  CHECK(ended.steps == 1);
  CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-00000001");
}

TEST_CASE("a signal during an evaluation ends it, with a checkpoint and a summary that says so", "[train]") {
  const std::pair<const char*, std::int64_t> cases[] = {{"train.eval_every=2 steps", 2},
                                                        {"train.eval_every=99 steps", 4}};
  for (const auto& [eval_every, steps] : cases) {
    INFO(eval_every);
    const TemporaryFolder root;
    std::atomic<int> stop = 0;
    train::SessionOptions options;
    options.stop = &stop;
    setup::Setup setup = setup_of_text(small_images, {"train.log_every=never", eval_every});
    bool saved = false;
    auto& dataset = setup.evaluations.front().dataset;
    dataset = std::make_shared<Watched>(dataset, [&] {
      saved = fs::exists(root / "run/checkpoints/last");
      stop = SIGTERM;
    });
    const Trained trained = train_setup_in(root / "run", setup, options);
    CHECK(trained.ended.steps == steps);
    CHECK(trained.of<run::Evaluated>().empty());
    CHECK(trained.of<run::Logged>().back().step == steps);
    CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-0000000" + std::to_string(steps));
    CHECK(saved == (steps == 4));  // the last evaluation comes after the checkpoint
    const auto summary = nlohmann::json::parse(read_text(root / "run/summary.json"));
    CHECK(summary["status"] == "stopped");
    CHECK(summary["reason"] == "signal");
    CHECK(summary["exit_status"] == 128 + SIGTERM);
    CHECK_FALSE(summary["final"].contains("test"));
  }
}

TEST_CASE("a run that a signal ended in the evaluation after its last step makes up for it when it is resumed",
          "[train]") {
  const TemporaryFolder root;
  const auto setup_with = [&] { return setup_of_text(small_images, {"train.eval_every=4 steps"}); };
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  setup::Setup setup = setup_with();
  auto& dataset = setup.evaluations.front().dataset;
  dataset = std::make_shared<Watched>(dataset, [&] { stop = SIGTERM; });
  train_setup_in(root / "run", setup, options);
  const fs::path last = root.path() / "run/checkpoints/last";
  CHECK(run::load_run_state(last).evaluation_is_due);
  const Trained resumed = continue_in(root / "run", setup_with());
  CHECK(resumed.ended.steps == 4);
  CHECK(resumed.of<run::Evaluated>().size() == 1);
  CHECK_FALSE(run::load_run_state(last).evaluation_is_due);
  const auto summary = nlohmann::json::parse(read_text(root / "run/summary.json"));
  CHECK(summary["reason"] == "duration");
  CHECK(summary["final"].contains("test"));
}

TEST_CASE("after early stopping a signal in the last evaluation leaves that to --resume", "[train]") {
  const TemporaryFolder root;
  const std::vector<std::string> set = {"data.validation=0.25", "train.eval_every=1 step",
                                        "optimizer.learning_rate=1.0e-30",  // nothing improves
                                        "train.early_stopping={metric: loss, patience: 1}"};
  const Trained whole = train_setup_in(root / "whole", setup_of_text(small_images, set));
  REQUIRE(whole.ended.reason == "early_stopping");

  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  setup::Setup setup = setup_of_text(small_images, set);
  REQUIRE(setup.evaluations.size() == 2);
  auto& test = setup.evaluations.back().dataset;
  test = std::make_shared<Watched>(test, [&] { stop = SIGTERM; });
  const run::Ended stopped = train_setup_in(root / "run", setup, options).ended;
  CHECK(stopped.status == "stopped");
  CHECK(stopped.reason == "early_stopping");
  CHECK(stopped.exit_status == 128 + SIGTERM);
  CHECK(stopped.continues);
  CHECK(stopped.members.front().final_measures.back().first == "validation");

  const Trained resumed = continue_in(root / "run", setup_of_text(small_images, set));
  CHECK(resumed.ended.status == "done");
  CHECK(resumed.ended.reason == "early_stopping");
  CHECK(resumed.ended.exit_status == 0);
  CHECK(resumed.result().final_measures == whole.result().final_measures);
  CHECK(resumed.same_bits(whole));
}

TEST_CASE("after a guard has stopped a run a signal changes neither its status nor what --resume makes up for",
          "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup =
      setup_of_text(small_images, {"train.duration=8 steps", "train.eval_every=1 step",
                                   "train.loss_spike={factor: 3.0, window: 2 steps, action: halt}"});
  std::int64_t step_now = 0;
  train::SessionOptions options;
  options.between_steps = [&](Module& module, std::int64_t step) {
    step_now = step;
    if (step != 3) return;
    const std::vector<float> large = {500.0F, -500.0F, 0.0F};
    module.wait(module.write(module.input("dense_0.bias"), {every_device, 0}, std::as_bytes(std::span(large))));
  };
  const Trained whole = train_setup_in(root / "whole", setup, options);
  REQUIRE(whole.ended.reason == "guard");
  REQUIRE(whole.ended.steps == 4);
  REQUIRE(whole.of<run::Evaluated>().size() == 4);

  std::atomic<int> stop = 0;
  options.stop = &stop;
  setup::Setup watched = setup;
  auto& test = watched.evaluations.front().dataset;
  test = std::make_shared<Watched>(test, [&] {
    if (step_now == 4) stop = SIGTERM;
  });
  const Trained stopped = train_setup_in(root / "run", watched, options);
  CHECK(stopped.ended.reason == "guard");
  CHECK(stopped.ended.exit_status == 5);
  CHECK(stopped.of<run::Evaluated>().size() == 3);

  const Trained resumed = continue_in(root / "run", setup);
  CHECK(resumed.ended.reason == "guard");
  CHECK(resumed.ended.exit_status == 5);
  CHECK(resumed.result().final_measures == whole.result().final_measures);
  CHECK(resumed.same_bits(whole));
}
