// Data that lies elsewhere by now: a run goes on with it, and is evaluated on it, where its content is the same.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/run/checkpoint.h"
#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using namespace pmaptrain::tests;
namespace fs = std::filesystem;

namespace {

using Arguments = std::vector<std::string>;

std::string table(int changed = -1) {
  std::string text = "x,y\n";
  for (int i = 0; i < 24; ++i) text += std::to_string(i == changed ? 9 : i % 7) + "," + std::to_string(i % 5) + ".5\n";
  return text;
}

// A project with a run that was stopped: project/c.yaml, project/data/train.csv and test.csv, project/runs/c.
struct Project {
  TemporaryFolder folder;

  explicit Project(const std::string& name = "project") {
    fs::create_directories(folder.path() / name / "data");
    fs::create_directories(folder.path() / "elsewhere");
    folder.write(name + "/data/train.csv", table());
    folder.write(name + "/data/test.csv", table(3));
    folder.write(name + "/c.yaml",
                 "data: {source: {csv: {train: data/train.csv, test: data/test.csv, target: y}}, batch_size: 4}\n"
                 "model: {layers: [dense: 1]}\nloss: mean_squared_error\n"
                 "optimizer: {adam: {}, learning_rate: 0.05}\ntrain: {duration: 20 steps}\n");
    const Finished begun = run({(folder / "project/c.yaml"), "--max-steps", "9"});
    INFO(begun.err);
    REQUIRE(begun.status == 0);
  }

  Finished run(Arguments arguments) const {
    const std::string place = arguments.front().ends_with(".yaml")
                                  ? fs::path(arguments.front()).parent_path().string() + "/runs/c"
                                  : arguments.front();
    arguments.insert(arguments.begin(), "run");
    arguments.insert(arguments.end(), {"--run-dir", place, "--progress", "none"});
    return call(arguments);
  }
  void move_data(const std::string& to) const {
    for (const char* const name : {"train.csv", "test.csv"}) {
      fs::rename(folder / (std::string("project/data/") + name), folder / (to + "/" + name));
    }
  }
  std::string parameters(const std::string& run_folder = "project/runs/c") const {
    return read_text(folder / (run_folder + "/checkpoints/last/params.safetensors"));
  }
};

std::string whole_run() {
  const Project project;
  const Finished done = project.run({project.folder / "project/c.yaml", "--resume"});
  REQUIRE(done.status == 0);
  return project.parameters();
}

}  // namespace

TEST_CASE("a run goes on with data at another path by config, folder, --data-root and --set", "[app]") {
  const std::string expected = whole_run();
  const auto check = [&](const Project& project, const Arguments& arguments, const std::string& run_folder) {
    const Finished done = project.run(arguments);
    INFO(done.err);
    CHECK(done.status == 0);
    CHECK(project.parameters(run_folder) == expected);
    // The run knows the new place from now on.
    CHECK(call({"eval", project.folder / run_folder}).status == 0);
  };
  {
    const Project project;
    project.move_data("elsewhere");
    const std::string run = project.folder / "project/runs/c";
    const Finished missing = project.run({run, "--resume"});
    CHECK(missing.status == 3);
    CHECK(contains(missing.err, "note: --data-root DIR, or --set data.source...=PATH, says where"));
    check(project, {run, "--resume", "--data-root", project.folder / "elsewhere"}, "project/runs/c");
  }
  {
    const Project project;
    project.move_data("elsewhere");
    check(project,
          {project.folder / "project/runs/c", "--resume", "--set",
           "data.source.csv.train=" + project.folder / "elsewhere/train.csv", "--set",
           "data.source.csv.test=" + project.folder / "elsewhere/test.csv"},
          "project/runs/c");
  }
  {
    const Project project;
    fs::rename(project.folder / "project", project.folder / "moved");
    check(project, {project.folder / "moved/runs/c", "--resume"}, "moved/runs/c");
  }
  {
    const Project project;
    fs::rename(project.folder / "project", project.folder / "moved");
    check(project, {project.folder / "moved/c.yaml", "--resume"}, "moved/runs/c");
  }
}

TEST_CASE("a run is evaluated and predicts after its project has moved", "[app]") {
  const Project project;
  const auto loss = [&](const Arguments& arguments) {
    const Finished done = call(arguments);
    INFO(done.err);
    REQUIRE(done.status == 0);
    return nlohmann::json::parse(done.out)["loss"].get<double>();
  };
  const double expected = loss({"eval", project.folder / "project/runs/c", "--json"});
  fs::rename(project.folder / "project", project.folder / "moved");
  const std::string run = project.folder / "moved/runs/c";
  CHECK(loss({"eval", run, "--json"}) == expected);
  fs::rename(project.folder / "moved/data/test.csv", project.folder / "elsewhere/test.csv");
  // Of the splits only the one that is evaluated is needed.
  fs::remove(project.folder / "moved/data/train.csv");
  CHECK(loss({"eval", run, "--json", "--data-root", project.folder / "elsewhere"}) == expected);
  CHECK(loss({"eval", run, "--json", "--verify-data", "--set",
              "data.source.csv.test=" + project.folder / "elsewhere/test.csv"}) == expected);
  CHECK(call({"predict", run, "--input", project.folder / "elsewhere/test.csv", "--output", "-", "--data-root",
              project.folder / "elsewhere"})
            .status == 0);
}

TEST_CASE("data with another content is refused with the file, both contents and what would do", "[app]") {
  const Project project;
  const std::string run = project.folder / "project/runs/c", train = project.folder / "project/data/train.csv";
  // One row of many, whose change leaves the size as it was.
  project.folder.write("project/data/train.csv", table(12));
  const Finished resumed = project.run({run, "--resume"});
  CHECK(resumed.status == 3);
  CHECK(contains(resumed.err, "--resume needs the data that the run began with, and it has changed: '" + train +
                                  "' (data.source.csv.train"));
  CHECK(contains(resumed.err, " bytes with hash "));
  CHECK(contains(resumed.err, "the run began with "));
  CHECK(contains(resumed.err, "help: restore the data, or begin another run (--name)"));
  CHECK(call({"eval", run}).status == 0);  // the test split is the same
  const Finished other = call({"eval", run, "--split", "train"});
  CHECK(other.status == 3);
  CHECK(contains(other.err, "the run's data has changed: '" + train + "'"));
  CHECK(contains(other.err, "to evaluate on other data: --set data.source.csv.train=FILE"));
  CHECK(call({"eval", run, "--split", "train", "--set", "data.source.csv.train=" + train}).status == 0);
  // Data that the model cannot read at all is still told as data that has changed.
  project.folder.write("project/data/train.csv", "a,b,y\n1,2,3\n4,5,6\n");
  const Finished unfit = project.run({run, "--resume"});
  CHECK(unfit.status == 3);
  CHECK(contains(unfit.err, "and it has changed: '" + train + "'"));
}

TEST_CASE("eval says how little of other data data.validation takes, and how to evaluate all of it", "[app]") {
  const Project project;
  project.folder.write("other.csv", table(12));
  const Finished done =
      call({"eval", project.folder / "project/runs/c", "--split", "validation", "--set", "data.validation=0.25",
            "--set", "data.source.csv.train=" + project.folder / "other.csv"});
  INFO(done.err);
  CHECK(done.status == 0);
  CHECK(contains(done.err, "data.validation takes "));
  CHECK(contains(done.err, " of this other data; all of them: --split train --set data.validation=null"));
}

TEST_CASE("--data-root finds the files by the ends of their paths, and is refused where it is no folder", "[app]") {
  const Project project;
  fs::create_directories(project.folder.path() / "elsewhere/data");
  project.move_data("elsewhere/data");
  const std::string run = project.folder / "project/runs/c";
  const Finished none = call({"eval", run, "--data-root", project.folder / "nowhere"});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "--data-root: '" + project.folder / "nowhere" + "' is no folder"));
  const Finished without = call({"validate", linear, "--data-root", project.folder / "elsewhere"});
  CHECK(without.status == 2);
  CHECK(contains(without.err, "--data-root was given, and data.source names no files"));
  const Finished found = call({"eval", run, "--data-root", project.folder / "elsewhere"});
  CHECK(found.status == 0);
  CHECK(contains(found.err, "note: data.source.csv.test"));
  CHECK(contains(found.err, "elsewhere/data/test.csv', by --data-root"));
  // Where the data was found is no warning of a run either.
  const Finished resumed =
      call({"run", run, "--resume", "--data-root", project.folder / "elsewhere", "--progress", "plain"});
  CHECK(resumed.status == 0);
  const std::string log = read_text(run + "/log.txt");
  CHECK(contains(log, "note: data.source.csv.test"));
  CHECK_FALSE(contains(log, "warning: data.source"));
}

TEST_CASE("a run of a version without hashes goes on, but not with data at another path", "[app]") {
  const Project project;
  const fs::path last = project.folder.path() / "project/runs/c/checkpoints/last";
  run::RunState state = run::load_run_state(last);
  CHECK(state.contents.size() == 2);
  state.contents.clear();
  pmaptrain::test::write_text(last / "state.json", run::to_json(state));
  fs::copy(project.folder / "project/data", project.folder / "elsewhere", fs::copy_options::recursive);
  const std::string run = project.folder / "project/runs/c";
  const Finished moved = project.run({run, "--resume", "--data-root", project.folder / "elsewhere"});
  CHECK(moved.status == 2);
  CHECK(contains(moved.err, "the run was begun by a version that kept no hash of its data"));
  CHECK(project.run({run, "--resume"}).status == 0);
  CHECK(pmaptrain::run::load_run_state(last).contents.size() == 2);
}

TEST_CASE("--resume tells of a run of its name beside the config, where the current directory has none",
          "[app],[process]") {
  const Project project;
  const std::filesystem::path elsewhere = project.folder.path() / "elsewhere";
  const auto resumed = [&](Arguments more) {
    Arguments arguments{"run", "../project/c.yaml", "--resume", "--max-steps", "12", "--progress", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    Finished finished = Process(arguments, 0, elsewhere).wait();
    INFO(finished.err);
    CHECK(finished.status == 0);
    return finished;
  };
  const Finished begun = resumed({});
  CHECK(contains(begun.err,
                 "warning: 'runs/c' has no checkpoint to resume from, so the run begins anew; '../project/runs/c', "
                 "beside the config, has one, and is resumed with --run-dir ../project/runs/c\n"));
  CHECK(contains(begun.out, "run folder: runs/c\n"));
  // There is one now, and where its folder is named nothing is guessed.
  CHECK_FALSE(contains(resumed({}).err, "beside the config"));
  CHECK_FALSE(contains(resumed({"--run-dir", "other"}).err, "beside the config"));
  const Finished named = resumed({"--run-dir", "../project/runs/c"});
  CHECK_FALSE(contains(named.err, "beside the config"));
  CHECK(contains(named.out, "run folder: ../project/runs/c\n"));
}

TEST_CASE("--resume tells which options of the run its config does not repeat, also of a finished run", "[app]") {
  const Project project;
  const std::string config = project.folder / "project/c.yaml";
  const std::string set = "train.duration=30 steps";
  const Arguments shown{"run",        config, "--resume", "--run-dir", project.folder / "project/runs/c",
                        "--progress", "plain"};
  Arguments longer = shown;
  longer.insert(longer.end(), {"--set", set, "--max-steps", "12"});
  CHECK(call(longer).status == 0);
  CHECK_FALSE(contains(read_text(project.folder / "project/runs/c/log.txt"), "changes from"));
  CHECK(call(shown).status == 0);
  const std::string log = read_text(project.folder / "project/runs/c/log.txt");
  CHECK(contains(log, "note: train.duration changes from 30 steps to 20 steps ("));
  CHECK(contains(log, "c.yaml:5:19); --set 'train.duration=30 steps' keeps the run's\n"));
  CHECK_FALSE(contains(log, "warning: train.duration"));
  longer.resize(shown.size() + 2);
  CHECK(call(longer).status == 0);
  const Finished finished = call(shown);
  CHECK(contains(finished.err, "warning: train.duration changes from 30 steps to 20 steps ("));
  CHECK(contains(finished.err, ": the run then ends at step 20, and is at step 30 already; --set"));
  CHECK(contains(finished.err, "is finished; a longer train.duration continues it\n"));
}

TEST_CASE("--resume tells where it replaces what has no checkpoint, and names a run of a similar name",
          "[app],[process]") {
  const Project project;
  const fs::path place = project.folder.path() / "project", runs = place / "runs";
  fs::copy(runs / "c", runs / "begun", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  fs::remove_all(runs / "begun/checkpoints");
  fs::remove(runs / "begun/summary.json");  // as of a run that was killed
  fs::copy(runs / "c", runs / "baseline", fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto resumed = [&](const std::string& name) {
    const Arguments arguments{"run", "c.yaml", "--resume", "--name", name, "--max-steps", "1", "--progress", "none"};
    return Process(arguments, 0, place).wait().err;
  };
  const std::string none = "' has no checkpoint to resume from, so the run begins anew; ";
  CHECK(contains(resumed("begun"), "warning: 'runs/begun" + none + "its metrics are replaced\n"));
  CHECK(contains(resumed("baselin"), "warning: 'runs/baselin" + none + "did you mean 'runs/baseline'?\n"));
  CHECK_FALSE(contains(resumed("other"), "there is no run"));  // as --progress none asks
  fs::remove_all(runs / "other");
  const Arguments shown{"run", "c.yaml", "--resume", "--name", "other", "--max-steps", "1", "--progress", "plain"};
  CHECK(contains(Process(shown, 0, place).wait().err,
                 "note: there is no run 'other' in runs: --resume begins a new one\n"));
  CHECK_FALSE(contains(Process(shown, 0, place).wait().err, "there is no run"));
  fs::remove_all(runs);
  CHECK_FALSE(contains(Process(shown, 0, place).wait().err, "there is no run"));
}
