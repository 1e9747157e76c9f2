// Whether a config may continue a run, what a finished run says, and what continuing leaves in the folder.
#include "core/train/resume.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "core/base/error.h"
#include "core/setup/make_setup.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

namespace fs = std::filesystem;

spec::Loaded loaded_of(const std::string& text, std::vector<std::string> set) {
  spec::Overrides overrides;
  overrides.set = std::move(set);
  return spec::load_text(text, "test.yaml", ".", overrides);
}

// Small images, with a checkpoint every second step.
std::vector<std::string> saving(std::vector<std::string> set = {}) {
  set.insert(set.begin(), "train.checkpoint={every: 2 steps, keep: 2}");
  return set;
}

// As `pmaptrain run --resume`.
Trained resume_in(const fs::path& run, std::vector<std::string> set, train::SessionOptions options = {}) {
  spec::Loaded loaded = loaded_of(small_images, std::move(set));
  std::optional<train::ResumePoint> point = train::find_resume_point(run);
  options.folder.resume = true;
  if (!point) return train_setup_in(run, setup::make_setup(std::move(loaded)), options);
  const run::RunState& state = point->checkpoint.state;
  train::check_config_continues(train::read_run_config(run), loaded);
  const setup::Setup setup = setup::make_setup(std::move(loaded), state.schedule_steps);
  train::check_data_continues(state, setup);
  options.resume = &*point;
  options.folder.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  return train_setup_in(run, setup, options);
}

std::vector<Diagnostic> refusal(const fs::path& run, const spec::Loaded& loaded) {
  try {
    train::check_config_continues(train::read_run_config(run), loaded);
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    return error.diagnostics();
  }
  return {};
}

std::optional<train::FinishedRun> finished(const fs::path& run, std::vector<std::string> set,
                                           std::optional<std::int64_t> max_steps = std::nullopt) {
  const setup::Setup setup = setup_of_text(small_images, std::move(set));
  return train::find_finished(run, train::find_resume_point(run)->checkpoint.state, setup.spec().train, setup.timetable,
                              max_steps);
}

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

}  // namespace

TEST_CASE("--resume takes another duration, other intervals and what only watches the run", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images));
  for (const char* const set :
       {"name=another", "mesh.workers=3", "mesh.backend=reference", "train.duration=9 steps", "train.log_every=2 steps",
        "train.eval_every=2 steps", "train.verify_replicas=2 steps", "train.checkpoint={every: 1 step, keep: 1}",
        "train.early_stopping={metric: loss, patience: 3}", "train.on_nonfinite=skip", "train.loss_spike={factor: 3.0}",
        "train.tensorboard=false", "train.max_time=1 hour"}) {
    INFO(set);
    CHECK(train::check_config_continues(train::read_run_config(root / "run"), loaded_of(small_images, {set})).empty());
  }
}

TEST_CASE("--resume refuses every other key at its place, with both values", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images));
  std::string text = small_images;
  text.replace(text.find("learning_rate: 0.01"), 19, "learning_rate: 0.02");
  text.replace(text.find("batch_size: 16"), 14, "batch_size: 24");
  const std::vector<Diagnostic> errors = refusal(root / "run", loaded_of(text, {}));
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].message == "--resume cannot change data.batch_size: the run has 16, this config 24");
  CHECK(errors[0].place.line == 7);
  CHECK(errors[0].help.empty());
  CHECK(errors[1].message == "--resume cannot change optimizer.learning_rate: the run has 0.01, this config 0.02");
  CHECK(errors[1].place.line == 19);
  CHECK(errors[1].help ==
        "pmaptrain run " + (root / "run") +
            " --resume --change optimizer.learning_rate=0.02 changes it from the resumed step on; or begin another run "
            "(--name), from this one's parameters with model.init.from: " +
            (root / "run"));
  for (const char* const set : {"seed=1", "data.shuffle=false", "train.ema={decay: 0.9}", "optimizer.clip=1.0",
                                "loss=mean_squared_error", "model.layers.4.dense=4"}) {
    INFO(set);
    std::string changed = set;
    changed.resize(changed.find('='));
    const std::vector<Diagnostic> one = refusal(root / "run", loaded_of(small_images, {set}));
    REQUIRE_FALSE(one.empty());
    CHECK(one.front().message.starts_with("--resume cannot change " + changed));
    CHECK(one.front().kind == "usage");
  }
}

TEST_CASE("--resume into the run of another config is one error, with the first keys and the names of the others",
          "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images));
  std::vector<std::string> set = {"seed=1",
                                  "data.shuffle=false",
                                  "data.seed=7",
                                  "data.microbatches=2",
                                  "optimizer.clip=1.0",
                                  "train.ema={decay: 0.9}"};
  const std::vector<Diagnostic> errors = refusal(root / "run", loaded_of(small_images, set));
  REQUIRE(errors.size() == 1);
  CHECK(errors.front().message ==
        "--resume cannot continue '" + (root / "run") + "' with this config: 6 keys differ from the run's");
  CHECK(errors.front().notes == std::vector<std::string>{"seed: the run has 0, this config 1",
                                                         "data.shuffle: the run has true, this config false",
                                                         "data.microbatches: the run has 1, this config 2",
                                                         "and data.seed, optimizer.clip, train.ema"});
  set.pop_back();
  CHECK(refusal(root / "run", loaded_of(small_images, set)).size() == 5);
}

TEST_CASE("--resume refuses data of another size, which no key shows", "[train]") {
  const setup::Setup setup = setup_of_text(small_images);
  run::RunState state;
  state.train_examples = 1047;
  state.batch_size = 16;
  const auto said = [&] {
    try {
      train::check_data_continues(state, setup);
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      return error.diagnostics().front().message;
    }
    return std::string();
  };
  CHECK(said() == "--resume cannot change the number of training examples: the run has 1,047, this config 48");
  state.train_examples = 48;
  CHECK(said().empty());
  state.batch_size = 8;
  CHECK(said() == "--resume cannot change the global batch size: the run has 8, this config 16");
}

TEST_CASE("--resume past the end of a schedule tells the rate from there on, and refuses a rate of 0", "[train]") {
  // What it says of a run that was begun for `before` epochs, of three steps each.
  const auto said = [](const std::string& rate, int before, int now) {
    const std::string epochs = "train.duration=" + std::to_string(now) + " epochs";
    const setup::Setup setup = setup_of_text(small_images, {"optimizer.learning_rate=" + rate, epochs});
    run::RunState state;
    state.train_examples = 48;
    state.batch_size = 16;
    state.schedule_steps = 3 * before;
    try {
      const std::vector<std::string> notes = train::check_data_continues(state, setup);
      return notes.empty() ? std::string() : notes.front();
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::usage);
      return "refused: " + error.diagnostics().front().message;
    }
  };
  const auto cosine = [](const std::string& more) { return "{cosine_decay: {init_value: 0.5, " + more + "}}"; };
  const std::string ended = "the schedule of the learning rate was for ";
  CHECK(said(cosine("decay: 7 epochs"), 6, 7).empty());
  CHECK(said(cosine("decay: 7 epochs"), 6, 12) == "refused: " + ended + "21 steps, and the rate from there on is 0");
  CHECK(said(cosine("decay: 7 epochs, alpha: 0.1"), 6, 12) == ended + "21 steps; the rate from there on is 0.05");
  CHECK(said(cosine("decay: 10 epochs"), 6, 10).empty());
  CHECK(said(cosine("decay: 3 epochs"), 6, 6).empty());  // it was to end before the run
  CHECK(said(cosine("decay: 3 epochs, alpha: 0.1"), 6, 7) == ended + "18 steps; the rate from there on is 0.05");
  CHECK(said("{join: {schedules: [0.1, 0.2], boundaries: [8 epochs]}}", 6, 8).empty());
  CHECK(said("{join: {schedules: [0.1, 0.2], boundaries: [8 epochs]}}", 6, 9) ==
        ended + "24 steps; the rate from there on is 0.2");
  CHECK(said("{exponential_decay: {init_value: 0.5, transition: 5, decay_rate: 0.9}}", 6, 12).empty());
  CHECK(said("0.1", 6, 12).empty());
}

TEST_CASE("--resume keeps the length of a schedule that the config leaves to the run's duration", "[train]") {
  const TemporaryFolder root;
  const std::string cosine = "optimizer.learning_rate={cosine_decay: {init_value: 0.01, alpha: 0.1}}";
  const auto kept = [&](std::vector<std::string> set) {
    return train::kept_decisions(train::read_run_config(root / "run"), loaded_of(small_images, std::move(set)));
  };
  const std::vector<std::string> run_length = {"optimizer.learning_rate.cosine_decay.decay=4 steps"};
  train_setup_in(root / "run", setup_of_text(small_images, {cosine}));
  CHECK(kept({cosine}).empty());
  CHECK(kept({cosine, "train.duration=8 steps"}) == run_length);
  // What the config itself says is a change that is refused, and so is the default of another key.
  CHECK(kept({cosine, "optimizer.learning_rate.cosine_decay.decay=8 steps"}).empty());
  const std::string other = "optimizer.learning_rate={cosine_decay: {init_value: 0.01}}";
  CHECK(kept({other, "train.duration=8 steps"}) == run_length);
  const std::vector<Diagnostic> errors = refusal(root / "run", loaded_of(small_images, {other}));
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].message ==
        "--resume cannot change optimizer.learning_rate.cosine_decay.alpha: the run has 0.1, this config 0.0");
  CHECK(kept({"optimizer.learning_rate={linear: {init_value: 0.01}}", "train.duration=8 steps"}).empty());
}

TEST_CASE("a finished run repeats its reason and says what continues it", "[train]") {
  const TemporaryFolder root;
  const auto check = [&](const std::string& name, std::vector<std::string> set, std::optional<std::int64_t> max_steps,
                         const std::string& reason, int status, const std::string& advice) {
    INFO(name);
    train::SessionOptions options;
    options.max_steps = max_steps;
    train_setup_in(root / name, setup_of_text(small_images, set), options);
    const auto found = finished(root / name, std::move(set), max_steps);
    REQUIRE(found);
    CHECK(found->ended.reason == reason);
    CHECK(found->ended.exit_status == status);
    CHECK(found->advice == advice);
  };
  check("duration", {}, {}, "duration", 0, "a longer train.duration continues it");
  CHECK_FALSE(finished(root / "duration", {"train.duration=5 steps"}));

  check("max_steps", {}, 2, "max_steps", 0, "a larger --max-steps continues it, or none");
  CHECK_FALSE(finished(root / "max_steps", {}));
  CHECK_FALSE(finished(root / "max_steps", {}, 3));

  const std::string still = "optimizer.learning_rate=1.0e-30";  // nothing improves
  const auto patience = [](int evaluations) {
    return "train.early_stopping={metric: loss, patience: " + std::to_string(evaluations) + "}";
  };
  check("early", {still, "train.eval_every=1 step", patience(2)}, {}, "early_stopping", 0,
        "a larger train.early_stopping.patience continues it");
  CHECK_FALSE(finished(root / "early", {still, "train.eval_every=1 step", patience(3)}));
  CHECK_FALSE(finished(root / "early", {still, "train.eval_every=1 step"}));

  const std::string sgd = "optimizer={sgd: {}, learning_rate: 1.0e+30}";  // overflows
  check("nonfinite", {sgd}, {}, "guard", 5, "train.on_nonfinite: skip continues it");
  CHECK_FALSE(finished(root / "nonfinite", {sgd, "train.on_nonfinite=skip"}));
}

TEST_CASE("a run with a longer duration ends as one that had it from the start", "[train]") {
  const TemporaryFolder root;
  // The last step is no multiple of the interval of lines, so its line is there only because the run stopped.
  const std::vector<std::string> lines = {"train.log_every=3 steps"};
  train_setup_in(root / "run", setup_of_text(small_images, saving(lines)));
  const std::vector<std::string> longer = {"train.log_every=3 steps", "train.duration=11 steps"};
  const Trained continued = resume_in(root / "run", saving(longer));
  const Trained whole = train_setup(setup_of_text(small_images, saving(longer)));
  CHECK(continued.same_bits(whole));
  CHECK(continued.result().final_measures == whole.result().final_measures);
}

TEST_CASE("a run of mixed precision that is stopped and continued has the bits of one that is not", "[train]") {
  const TemporaryFolder root;
  const std::vector<std::string> set =
      saving({"precision=mixed_bfloat16", "train.duration=9 steps", "train.ema={decay: 0.9}"});
  train_setup_in(root / "run", setup_of_text(small_images, set), until(5));
  CHECK(resume_in(root / "run", set).same_bits(train_setup(setup_of_text(small_images, set))));
}

TEST_CASE("a run with augmentation that is stopped and continued has the bits of one that is not", "[train]") {
  const TemporaryFolder root;
  const std::vector<std::string> set =
      saving({"data.augment=[random_crop: 2, random_flip, random_rotation: 20, random_resized_crop, cutout: 2]",
              "train.duration=9 steps"});
  train_setup_in(root / "run", setup_of_text(small_images, set), until(5));
  CHECK(resume_in(root / "run", set).same_bits(train_setup(setup_of_text(small_images, set))));
}

TEST_CASE("a run that was killed between its last checkpoint and its last lines has them once it is resumed",
          "[train]") {
  const TemporaryFolder root;
  const std::string summary = root / "run/summary.json";
  // With each of them the last step has another line of its own: of the step, and of an epoch that it ends.
  for (const auto& [steps, log_every] : {std::pair{10, 3}, std::pair{12, 5}, std::pair{12, 4}, std::pair{12, 12}}) {
    const std::vector<std::string> set =
        saving({"train.duration=" + std::to_string(steps) + " steps",
                "train.log_every=" + std::to_string(log_every) + " steps", "train.ema={decay: 0.9}"});
    INFO(steps << " steps, log_every " << log_every);
    fs::remove_all(root / "run");
    const Trained whole = train_setup_in(root / "run", setup_of_text(small_images, set));
    fs::remove(summary);
    const Trained resumed = resume_in(root / "run", set);
    CHECK(resumed.metrics == whole.metrics);
    CHECK(resumed.same_bits(whole));
    CHECK(resumed.result().final_measures == whole.result().final_measures);
    CHECK(fs::exists(summary));
  }
}

TEST_CASE("--resume begins a run where there is none", "[train]") {
  const TemporaryFolder root;
  CHECK_FALSE(train::find_resume_point(root / "run"));
  const Trained whole = train_setup(setup_of_text(small_images));
  CHECK(resume_in(root / "run", {}).same_bits(whole));
  // Also where a process was killed before its first checkpoint.
  fs::remove_all(root / "run/checkpoints");
  fs::remove(root / "run/summary.json");
  CHECK(resume_in(root / "run", {}).same_bits(whole));
}

TEST_CASE("--resume leaves a folder alone that pmaptrain did not write", "[train]") {
  const TemporaryFolder root;
  fs::create_directory(root / "run");
  root.write("run/notes.txt", "somebody's own");
  CHECK_FALSE(train::find_resume_point(root / "run"));
  try {
    resume_in(root / "run", {});
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    CHECK(error.diagnostics().front().message ==
          "'" + (root / "run") + "' was not written by pmaptrain, so there is no run to resume");
  }
  CHECK(test::listing(root / "run") == "notes.txt: somebody's own\n");
}

TEST_CASE("a run resumed twenty times keeps as many checkpoints as it says, and nothing half done", "[train]") {
  const TemporaryFolder root;
  const fs::path checkpoints = root.path() / "run/checkpoints";
  const std::vector<std::string> set = saving({"train.duration=41 steps", "train.eval_every=never"});
  for (std::int64_t stop = 2; stop <= 41; stop += 2) {
    if (stop > 2) {
      // A process killed while it wrote, or while it removed others.
      fs::copy(run::find_checkpoint(root / "run", "last"), checkpoints / (".tmp-step-0000010" + std::to_string(stop)));
      fs::copy(run::find_checkpoint(root / "run", "last"), checkpoints / (".old-step-0000020" + std::to_string(stop)));
    }
    resume_in(root / "run", set, until(stop));
    std::set<std::string> expected = {"last", run::checkpoint_name(stop)};
    if (stop > 2) expected.insert(run::checkpoint_name(stop - 2));
    CHECK(names_in(checkpoints) == expected);
  }
  // Killed before it removed the third.
  fs::copy(run::find_checkpoint(root / "run", "40"), checkpoints / "step-00000037");
  fs::remove(root / "run/summary.json");
  resume_in(root / "run", set, until(40));
  CHECK(names_in(checkpoints) == std::set<std::string>{"last", "step-00000038", "step-00000040"});
}

TEST_CASE("links that a killed run did not set lead to the last and the best checkpoint once it is resumed",
          "[train]") {
  const TemporaryFolder root;
  const fs::path checkpoints = root.path() / "run/checkpoints";
  const std::vector<std::string> set = {"train.checkpoint={every: 2 steps, keep: 3, best: {metric: loss}}",
                                        "train.eval_every=2 steps"};
  train_setup_in(root / "run", setup_of_text(small_images, set));
  const std::string last = fs::read_symlink(checkpoints / "last"), best = fs::read_symlink(checkpoints / "best");
  CHECK(last == "step-00000004");
  for (const char* const other : {"", "step-00000002"}) {
    INFO(other);
    for (const char* const link : {"last", "best"}) {
      fs::remove(checkpoints / link);
      if (*other != '\0') fs::create_symlink(other, checkpoints / link);
    }
    fs::remove(root / "run/summary.json");
    resume_in(root / "run", set);
    CHECK(fs::read_symlink(checkpoints / "last") == last);
    CHECK(fs::read_symlink(checkpoints / "best") == best);
  }
}

TEST_CASE("what a resumed run takes from its config in place of what an option gave it is told", "[train]") {
  const TemporaryFolder root;
  const fs::path run = root / "run";
  train_setup_in(run, setup_of_text(small_images, {"train.duration=8 steps", "mesh.workers=2"}), until(6));
  const auto told = [&](const std::vector<std::string>& set) {
    const spec::Loaded loaded = loaded_of(small_images, set);
    const auto taken = train::taken_from_config(train::read_run_config(run), loaded);
    setup::Setup setup = setup::make_setup(loaded);
    std::vector<std::string> lines = train::tell_taken(taken, train::find_resume_point(run)->checkpoint.state, setup);
    for (std::string& line : lines) line = "warning: " + line;
    lines.insert(lines.end(), setup.loaded.facts.begin(), setup.loaded.facts.end());
    return lines;
  };
  using Lines = std::vector<std::string>;
  const std::string workers = "mesh.workers changes from 2 to auto, the default; --set mesh.workers=2 keeps the run's";
  CHECK(told({}) ==
        Lines{"warning: train.duration changes from 8 steps to 4 steps (test.yaml:21:13): the run then ends "
              "at step 4, and is at step 6 already; --set 'train.duration=8 steps' keeps the run's",
              workers});
  // What an option of this command says needs no line.
  CHECK(told({"train.duration=12 steps", "mesh.workers=1"}).empty());
  CHECK(told({"train.duration=4 steps"}) == Lines{workers});
}

TEST_CASE("a run goes on with another number of blocks, and says so", "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images, saving()));
  const std::vector<std::string> set = saving({"train.duration=8 steps", "mesh.blocks=2"});
  CHECK(train::check_config_continues(train::read_run_config(root / "run"), loaded_of(small_images, set)) ==
        std::vector<std::string>{"mesh.blocks changes from 1 to 2: sums run in another order, so the bits may differ "
                                 "from here on"});
  CHECK(resume_in(root / "run", set).ended.steps == 8);
}

TEST_CASE("a run goes on with other devices, says so, and comes close to the one that kept them", "[train]") {
  const TemporaryFolder root;
  const Trained whole = train_setup(setup_of_text(small_images, saving({"train.duration=8 steps"})));
  train_setup_in(root / "run", setup_of_text(small_images, saving()));
  const std::vector<std::string> set = saving({"train.duration=8 steps", "mesh.axes={devices: 2}"});
  const std::vector<std::string> notes =
      train::check_config_continues(train::read_run_config(root / "run"), loaded_of(small_images, set));
  REQUIRE(notes.size() == 1);
  CHECK(
      notes.front() ==
      "mesh.axes changes from devices=4 to devices=2: sums run in another order, so the bits may differ from here on");
  const Trained resumed = resume_in(root / "run", set);
  REQUIRE(resumed.parameters.size() == whole.parameters.size());
  for (const auto& [name, tensor] : resumed.parameters) {
    INFO(name);
    const std::vector<double> found = to_doubles(tensor), expected = to_doubles(whole.parameters.at(name));
    REQUIRE(found.size() == expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(std::abs(found[i] - expected[i]) < 1e-5);
  }
}

TEST_CASE("a metrics.jsonl that became shorter is cut back to whole lines, which a warning says", "[train]") {
  const TemporaryFolder root;
  const std::string metrics = root / "run/metrics.jsonl";
  train_setup_in(root / "run", setup_of_text(small_images, saving()), until(2));
  const std::string whole =
      read_text(metrics).substr(0, train::find_resume_point(root / "run")->checkpoint.state.metrics_bytes);
  const std::size_t line = whole.find('\n') + 1;
  for (const std::size_t size : {whole.size() - 1, whole.size() - 7, line + 1, line, line - 1, std::size_t{0}}) {
    INFO(size << " of " << whole.size() << " bytes are left");
    fs::remove_all(root / "again");
    fs::copy(root / "run", root / "again", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    fs::resize_file(root / "again/metrics.jsonl", size);
    const Trained resumed = resume_in(root / "again", saving());  // which parses each line
    CHECK(resumed.ended.steps == 4);
    CHECK(resumed.of<run::Warned>().front().text ==
          "'" + (root / "again/metrics.jsonl") + "' has " + std::to_string(size) + " bytes, but had " +
              std::to_string(whole.size()) + " at the checkpoint: lines are missing");
    const std::string left = whole.substr(0, size);
    CHECK(read_text(root / "again/metrics.jsonl").starts_with(left.substr(0, left.rfind('\n') + 1)));
  }
}

TEST_CASE("a run is not continued where a pipe stands for one of its files, and nobody waits for its reader",
          "[train]") {
  const TemporaryFolder root;
  train_setup_in(root / "run", setup_of_text(small_images, saving()), until(2));
  for (const char* const name : {"metrics.jsonl", "log.txt"}) {
    const fs::path file = fs::path(root / "run") / name, aside = root / name;
    fs::rename(file, aside);
    REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    try {
      resume_in(root / "run", saving());
      FAIL("it was continued");
    } catch (const Error& error) {
      CHECK(error.status() == ExitStatus::resource);
      CHECK(error.diagnostics().front().message ==
            "the run folder '" + (root / "run") + "' cannot be continued: '" + file.string() + "' is no regular file");
    }
    fs::rename(aside, file);
  }
  CHECK(resume_in(root / "run", saving()).ended.steps == 4);
}
