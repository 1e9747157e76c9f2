// The run folder, and every way in which a run can end.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/base/error.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/run/file_size_limit.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<Json> lines_of(const fs::path& file) {
  std::vector<Json> lines;
  std::istringstream text(read_text(file));
  for (std::string line; std::getline(text, line);) lines.push_back(Json::parse(line));
  return lines;
}

Json summary_of(const fs::path& run) { return Json::parse(read_text(run / "summary.json")); }

// "step 1, step 2, epoch 3, eval 3": events and their steps.
std::string order_of(const std::vector<Json>& lines) {
  std::string text;
  for (const Json& line : lines) {
    if (!text.empty()) text += ", ";
    text += line["event"].get<std::string>() + " " + std::to_string(line["step"].get<int>());
  }
  return text;
}

// Another dataset, of which example `bad` cannot be read.
class FailingAfter : public data::Dataset {
 public:
  FailingAfter(std::shared_ptr<const data::Dataset> whole, std::int64_t bad, bool as_error)
      : whole_(std::move(whole)), bad_(bad), as_error_(as_error) {}
  std::int64_t size() const override { return whole_->size(); }
  data::Field input() const override { return whole_->input(); }
  data::Field target() const override { return whole_->target(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (index == bad_ && as_error_) fail_data("example 20 cannot be read");
    if (index == bad_) throw std::runtime_error("the disk is gone");
    whole_->read(index, input, target);
  }

 private:
  std::shared_ptr<const data::Dataset> whole_;
  std::int64_t bad_;
  bool as_error_;
};

// The events of a run that must throw, and its message.
struct Failed {
  Recording recording;
  std::string what;
};
Failed fail_in(const fs::path& dir, const setup::Setup& setup, train::SessionOptions options = {}) {
  Failed failed;
  options.run_dir = dir;
  run::Consumer* const consumer = &failed.recording;
  try {
    train::train(setup, options, {&consumer, 1});
  } catch (const std::exception& error) {
    failed.what = error.what();
  }
  return failed;
}

}  // namespace

TEST_CASE("a run folder holds config, metrics, log, summary and a checkpoint", "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"train.log_every=2 steps"});
  train_setup_in(root / "run", setup);
  CHECK(read_text(root / "run/config.yaml") == setup.loaded.resolved);

  const std::vector<Json> lines = lines_of(root / "run/metrics.jsonl");
  CHECK(order_of(lines) == "step 1, step 2, epoch 3, eval 3, step 4, epoch 4, eval 4");
  for (const char* key :
       {"epoch", "loss", "accuracy", "learning_rate", "grad_norm", "examples_per_second", "seconds"}) {
    INFO(key);
    CHECK(lines[0][key].is_number());
  }
  CHECK(lines[2]["examples"] == 48);
  CHECK(lines[2]["epoch"] == 1);
  CHECK(lines[3]["split"] == "test");
  CHECK(lines[3]["examples"] == 21);
  CHECK(lines[4]["epoch"] == 2);
  CHECK(lines[5]["examples"] == 16);

  const Json summary = summary_of(root / "run");
  CHECK(summary["status"] == "done");
  CHECK(summary["reason"] == "duration");
  CHECK(summary["exit_status"] == 0);
  CHECK(summary["steps"] == 4);
  CHECK(summary["epochs"] == 1);
  CHECK(summary["examples_seen"] == 64);
  CHECK(summary["examples_skipped"] == 0);
  CHECK(summary["final"]["train"]["loss"] == lines[5]["loss"]);
  CHECK(summary["final"]["test"]["accuracy"] == lines[6]["accuracy"]);
  CHECK(summary["best"].is_null());
  CHECK(summary["seconds"].is_number());
  CHECK(summary["version"].is_string());
  CHECK(read_text(root / "run/log.txt").find("step 4/4  epoch 2/2") != std::string::npos);
  CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-00000004");
}

TEST_CASE("the mean of an epoch's logged losses is the epoch's loss", "[train]") {
  const Trained trained = train_setup(setup_of_text(small_images, {"train.duration=1 epoch"}));
  double sum = 0;
  for (const run::Logged& logged : trained.of<run::Logged>()) sum += logged.measures.front().second;
  REQUIRE(trained.of<run::EpochEnded>().size() == 1);
  CHECK(trained.of<run::EpochEnded>().front().measures.front().second == Approx(sum / 3).epsilon(1e-6));
}

TEST_CASE("an epoch's mean weighs a short last batch by its examples", "[train]") {
  const Trained trained = train_setup(setup_of_text(
      small_images, {"data.batch_size=40", "data.remainder=mask", "train.duration=1 epoch", "mesh.axes={a: 4}"}));
  const auto logged = trained.of<run::Logged>();
  REQUIRE(logged.size() == 2);
  const auto epoch = trained.of<run::EpochEnded>().front();
  CHECK(epoch.examples == 48);
  for (std::size_t i = 0; i < 2; ++i) {
    const double first = logged[0].measures[i].second, last = logged[1].measures[i].second;
    CHECK(epoch.measures[i].second == Approx((40 * first + 8 * last) / 48).epsilon(1e-6));
  }
}

TEST_CASE("the resolved config of a run gives the same bits again", "[train]") {
  for (const std::vector<std::string>& set : std::vector<std::vector<std::string>>{
           {"seed=12"},
           {"mesh.axes=[{a: 2}, {b: 3}]", "data.batch_size=10", "data.remainder=mask", "data.microbatches=2"},
           {"model.layers=[flatten, {dropout: 0.3}, {name: head, dense: 3}]", "optimizer.sgd={momentum: 0.9}",
            "optimizer.base_batch_size=7", "data.seed=3"}}) {
    INFO(set.front());
    const TemporaryFolder root;
    const Trained first = train_setup_in(root / "run", setup_of_text(small_images, set));
    const Trained again = train_setup(setup::make_setup(spec::load(root / "run", {})));
    CHECK(again.same_bits(first));
  }
}

TEST_CASE("first and last steps are logged even when the interval is never", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images, {"train.log_every=never"}));
  CHECK(order_of(lines_of(root / "run/metrics.jsonl")) == "step 1, eval 3, step 4, epoch 4, eval 4");
}

TEST_CASE("with eval_every never nothing is evaluated, at the end neither", "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images, {"train.eval_every=never"});
  CHECK(setup.evaluations.empty());
  const Trained trained = train_setup_in(root / "run", setup);
  CHECK(trained.of<run::Evaluated>().empty());
  CHECK(trained.result().final_measures.size() == 1);
  CHECK(evaluate::evaluate_checkpoint(setup.loaded, root / "run", "last", "test").front().examples == 21);
}

TEST_CASE("max_steps stops with a checkpoint and exit status 0", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.max_steps = 2;
  const Trained trained = train_setup_in(root / "run", setup_of_text(small_images), options);
  CHECK(trained.ended.status == "stopped");
  CHECK(trained.ended.reason == "max_steps");
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.steps == 2);
  CHECK(order_of(lines_of(root / "run/metrics.jsonl")) == "step 1, step 2, epoch 2, eval 2");
  CHECK(summary_of(root / "run")["reason"] == "max_steps");
  CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-00000002");

  options.max_steps = 4;  // all there are
  CHECK(train_setup(setup_of_text(small_images), options).ended.reason == "duration");
  options.max_steps = 100;
  CHECK(train_setup(setup_of_text(small_images), options).ended.steps == 4);
}

TEST_CASE("a signal ends the run after the step under way, logged and with a checkpoint", "[train]") {
  const TemporaryFolder root;
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 2) stop = SIGTERM;
  };
  const Trained trained = train_setup_in(root / "run", setup_of_text(small_images, {"train.log_every=never"}), options);
  CHECK(trained.ended.status == "stopped");
  CHECK(trained.ended.reason == "signal");
  CHECK(trained.ended.exit_status == 128 + SIGTERM);
  CHECK(trained.ended.steps == 2);
  // No evaluation keeps whoever sent it waiting.
  CHECK(order_of(lines_of(root / "run/metrics.jsonl")) == "step 1, step 2, epoch 2");
  CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-00000002");
}

TEST_CASE("the last measures of a run that a signal ended have no evaluation of earlier parameters", "[train]") {
  const TemporaryFolder root;
  std::atomic<int> stop = 0;
  train::SessionOptions options;
  options.stop = &stop;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 3) stop = SIGTERM;
  };
  const setup::Setup setup = setup_of_text(small_images, {"train.eval_every=2 steps", "train.log_every=never"});
  train_setup_in(root / "run", setup, options);
  CHECK(order_of(lines_of(root / "run/metrics.jsonl")) == "step 1, eval 2, step 3, epoch 3");
  const Json last = summary_of(root / "run")["final"];
  CHECK(last.contains("train"));
  CHECK_FALSE(last.contains("test"));
}

TEST_CASE("a run that breaks leaves a summary that says failed, with its exit status", "[train]") {
  for (const bool as_error : {true, false}) {
    INFO(as_error);
    const TemporaryFolder root;
    setup::Setup setup = setup_of_text(small_images, {"data.shuffle=false"});
    setup.source.train = std::make_shared<const FailingAfter>(setup.source.train, 20, as_error);
    const Failed failed = fail_in(root / "run", setup);
    CHECK(failed.what.find(as_error ? "example 20 cannot be read" : "the disk is gone") != std::string::npos);
    const Json summary = summary_of(root / "run");
    CHECK(summary["status"] == "failed");
    CHECK(summary["reason"] == "error");
    CHECK(summary["exit_status"] == (as_error ? 3 : 1));
    CHECK(summary["steps"] == 1);
    CHECK(failed.recording.of<run::Ended>().size() == 1);
    // Between two steps the parameters are those of a whole step: what is trained is kept, whatever failed.
    CHECK(fs::exists(root / "run/checkpoints/step-00000001/params.safetensors"));
  }
}

TEST_CASE("a run whose data fails says so where its checkpoint cannot be written either", "[train]") {
  const TemporaryFolder root;
  setup::Setup setup = setup_of_text(small_images, {"data.shuffle=false"});
  setup.source.train = std::make_shared<const FailingAfter>(setup.source.train, 20, true);
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t) {
    std::error_code ignored;
    fs::create_symlink("/proc/nowhere", root / "run/checkpoints", ignored);
  };
  const Failed failed = fail_in(root / "run", setup, options);
  CHECK(failed.what.find("example 20 cannot be read") != std::string::npos);
  const std::vector<run::Warned> warned = failed.recording.of<run::Warned>();
  REQUIRE(warned.size() == 1);
  CHECK(warned.front().text.starts_with("no checkpoint could be written: "));
  CHECK(summary_of(root / "run")["exit_status"] == 3);
}

TEST_CASE("an existing run folder is refused before anything runs, and left as it is", "[train]") {
  const TemporaryFolder root;
  const setup::Setup setup = setup_of_text(small_images);
  train_setup_in(root / "run", setup);
  const std::string before = read_text(root / "run/metrics.jsonl");
  const Failed failed = fail_in(root / "run", setup);
  CHECK(failed.what.find("exists") != std::string::npos);
  CHECK(failed.recording.events.empty());
  CHECK(read_text(root / "run/metrics.jsonl") == before);
}

TEST_CASE("a disk that fills up during training fails the run at its checkpoint, and nothing is half-written",
          "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.run_dir = root / "run";
  std::optional<FileSizeLimit> limit;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 3) limit.emplace(1000);
  };
  Recording recording;
  run::Consumer* const consumer = &recording;
  std::string message;
  ExitStatus status = ExitStatus::done;
  try {
    train::train(setup_of_text(small_images, {"train.log_every=1 step", "model.layers.0.conv.features=12"}), options,
                 {&consumer, 1});
  } catch (const Error& error) {
    message = error.diagnostics().front().message;
    status = error.status();
  }
  limit.reset();
  CHECK(status == ExitStatus::failed);
  CHECK(message.ends_with("params.safetensors' cannot be written: File too large"));
  CHECK(fs::is_empty(root / "run/checkpoints"));
  CHECK(read_text(root / "run/config.yaml").ends_with("\n"));
  CHECK(lines_of(root / "run/metrics.jsonl").size() >= 3);  // each of them whole
  CHECK(summary_of(root / "run")["status"] == "failed");
  CHECK(summary_of(root / "run")["exit_status"] == 1);
  const auto warned = recording.of<run::Warned>();
  CHECK(std::any_of(warned.begin(), warned.end(), [](const run::Warned& w) {
    return w.text.ends_with(
        "metrics.jsonl' cannot be written: File too large; its lines are kept in memory and tried again");
  }));
}

TEST_CASE("a run whose config cannot be written leaves nothing", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.run_dir = root / "run";
  ExitStatus status = ExitStatus::done;
  bool stepped = false;
  options.between_steps = [&](Module&, std::int64_t) { stepped = true; };
  try {
    const FileSizeLimit limit(300);
    train::train(setup_of_text(small_images), options, {});
  } catch (const Error& error) {
    status = error.status();
    CHECK(error.diagnostics().front().message == "the run folder '" + (root / "run") + "' cannot be made: '" +
                                                     (root / "run/config.yaml") +
                                                     "' cannot be written: File too large");
  }
  CHECK(status == ExitStatus::resource);
  CHECK_FALSE(stepped);
  CHECK_FALSE(fs::exists(root / "run"));
}

TEST_CASE("a checkpoint that cannot be written fails the run", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.run_dir = root / "run";
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 1) fs::create_symlink("/proc/nowhere", root / "run/checkpoints");
  };
  CHECK_THROWS_AS(train::train(setup_of_text(small_images), options, {}), Error);
  CHECK(summary_of(root / "run")["status"] == "failed");
  CHECK(summary_of(root / "run")["exit_status"] == 1);
}

TEST_CASE("lines that a disk has no room for during a few steps are in the files at the end", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  std::optional<FileSizeLimit> limit;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 1) limit.emplace(10);
    if (step == 4) limit.reset();
  };
  const Trained trained =
      train_setup_in(root / "run", setup_of_text(small_images, {"train.duration=5 steps"}), options);
  CHECK(trained.ended.exit_status == 0);
  CHECK(trained.ended.missing.empty());
  CHECK(order_of(lines_of(root / "run/metrics.jsonl")) ==
        "step 1, step 2, step 3, epoch 3, eval 3, step 4, step 5, epoch 5, eval 5");
  const auto warned = trained.of<run::Warned>();
  CHECK(warned.size() == 3);  // once for each file
  CHECK(read_text(root / "run/log.txt").find("step 3/5") != std::string::npos);
}

TEST_CASE("a run whose lines are missing at its end fails, and its summary says so", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.run_dir = root / "run";
  const setup::Setup setup =
      setup_of_text(small_images, {"train.duration=200 steps", "train.log_every=1 step", "train.eval_every=never"});
  run::Ended ended;
  {
    const FileSizeLimit limit(12'000);  // more than a checkpoint's files need, less than the lines do
    ended = train::train(setup, options, {});
  }
  CHECK(ended.status == "failed");
  CHECK(ended.reason == "error");
  CHECK(ended.exit_status == 1);
  const auto lines = static_cast<int>(lines_of(root / "run/metrics.jsonl").size());
  REQUIRE(ended.missing.size() == 3);
  CHECK(ended.missing[0] ==
        "'" + (root / "run/metrics.jsonl") + "' lacks " + std::to_string(267 - lines) + " lines: File too large");
  CHECK(ended.missing[1].starts_with("'" + (root / "run/log.txt") + "' lacks "));
  CHECK(ended.missing[2].starts_with("'" + (root / "run/tensorboard/events.out.tfevents.")));
  CHECK(ended.missing[2].ends_with(" records: File too large"));
  CHECK(summary_of(root / "run")["status"] == "failed");
  CHECK(summary_of(root / "run")["exit_status"] == 1);
  CHECK(fs::read_symlink(root / "run/checkpoints/last") == "step-00000200");
}

TEST_CASE("a run folder that is moved gets the last checkpoint where it is, and the run fails", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step != 2) return;
    fs::rename(root / "run", root / "moved");
    fs::create_directory(root / "run");
    test::write_text(root / "run/mine.txt", "somebody's own");
  };
  const Failed failed = fail_in(root / "run", setup_of_text(small_images, {"train.log_every=3 steps"}), options);
  CHECK(failed.what ==
        "error: '" + (root / "run") + "' does not lead to the run folder any more, which is '" + (root / "moved") +
            "' now\n  help: the run stopped, with a last checkpoint in the folder where that is now; leave "
            "a run's folder in its place until the run ends\n");
  CHECK(fs::read_symlink(root / "moved/checkpoints/last") == "step-00000003");
  CHECK(order_of(lines_of(root / "moved/metrics.jsonl")) == "step 1, step 3");
  const std::string log = read_text(root / "moved/log.txt");
  CHECK(log.find("\nerror: '" + (root / "run") + "' does not lead to the run folder any more") != std::string::npos);
  CHECK(log.ends_with("run folder: " + (root / "moved") + "\n"));
  CHECK(summary_of(root / "moved")["status"] == "failed");
  CHECK(summary_of(root / "moved")["exit_status"] == 1);
  CHECK(test::listing(root / "run") == "mine.txt: somebody's own\n");
}

TEST_CASE("a run folder that is removed fails the run at its next log, and nothing is written elsewhere", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  std::int64_t steps = 0;
  options.between_steps = [&](Module&, std::int64_t step) {
    steps = step;
    if (step == 1) fs::remove_all(root / "run");
  };
  const Failed failed = fail_in(root / "run", setup_of_text(small_images, {"train.log_every=2 steps"}), options);
  CHECK(failed.what ==
        "error: the run folder '" + (root / "run") +
            "' was removed while the run went on\n  help: nothing was written elsewhere, so this run leaves "
            "nothing; run it again, and leave its folder alone\n");
  CHECK(steps == 1);  // the second was not passed on any more
  CHECK(failed.recording.of<run::Ended>().front().exit_status == 1);
  CHECK(fs::is_empty(root.path()));
}

TEST_CASE("a run folder that is moved before the last checkpoint has it, though nothing is logged before", "[train]") {
  const TemporaryFolder root;
  train::SessionOptions options;
  options.between_steps = [&](Module&, std::int64_t step) {
    if (step == 4) fs::rename(root / "run", root / "moved");
  };
  const Failed failed = fail_in(root / "run", setup_of_text(small_images), options);
  CHECK(failed.what.find("which is '" + (root / "moved") + "' now") != std::string::npos);
  CHECK(fs::read_symlink(root / "moved/checkpoints/last") == "step-00000004");
}

TEST_CASE("epochs shorter than the log interval have lines at its steps and at the end", "[train]") {
  const TemporaryFolder root;
  const auto order = [&](const std::string& log_every, const std::string& eval_every) {
    const fs::path run = root / log_every;
    train_setup_in(run,
                   setup_of_text(small_images, {"data.batch_size=48", "train.duration=7 steps",
                                                "train.log_every=" + log_every, "train.eval_every=" + eval_every}));
    return order_of(lines_of(run / "metrics.jsonl"));
  };
  CHECK(order("3 steps", "5 steps") ==
        "step 1, epoch 1, step 3, epoch 3, eval 5, step 6, epoch 6, step 7, epoch 7, eval 7");
  CHECK(order("never", "never") == "step 1, epoch 1, step 7, epoch 7");
}
