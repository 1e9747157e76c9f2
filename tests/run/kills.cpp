// A process that is killed leaves what it changed until then: a prefix of its changes, which are recorded. Whichever it
// is, the run continues to the same end: the same bits in its checkpoints, the same lines, the same summary.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/run/disk.h"
#include "tests/slice.h"
#include "tests/train/long_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

int wanted_kills() {
  const char* const given = std::getenv("PMAPTRAIN_KILLS");
  return given != nullptr ? std::atoi(given) : static_cast<int>(20 / test::slices_with_sanitizer(2));
}

std::string some_workers(std::mt19937& random) { return std::to_string(1 + random() % 4); }

// What one process of a run changes, from what is in the folder to the run's end.
class RecordedRun {
 public:
  // `folder` has the run, or nothing.
  RecordedRun(const LongRun& place, const std::string& folder, const std::vector<std::string>& more) {
    fs::create_directories(place.path(folder));
    RecordingFileSystem recorder(place.path(folder));
    {
      const run::InstalledFileSystem installed(recorder);
      place.complete(folder + "/run", more);
    }
    const std::vector<Change>& all = recorder.changes();
    for (std::size_t i = 0; i < recorder.first(); ++i) begin_.apply(all[i]);
    for (std::size_t i = recorder.first(); i < all.size(); ++i) add_torn(changes_, all[i]);
  }

  const std::vector<Change>& changes() const { return changes_; }
  const Disk& begin() const { return begin_; }
  Tree killed_after(std::size_t count) const {
    Disk disk = begin_;
    for (std::size_t i = 0; i < count; ++i) disk.apply(changes_[i]);
    return disk.tree();
  }

 private:
  Disk begin_;
  std::vector<Change> changes_;
};

// Whether a resumed process looks at what lies there: not in a checkpoint that has no name yet or any more, and not in
// what it only appends to.
bool is_looked_at(const std::string& path) {
  return !path.starts_with("run/checkpoints/.") && !path.starts_with("run/tensorboard/") && path != "run/log.txt";
}

// The newest checkpoint that has its name, -1 without one.
std::int64_t newest_step(const Tree& tree) {
  const std::string checkpoints = "run/checkpoints/";
  std::int64_t newest = -1;
  for (const auto& [path, node] : tree) {
    if (!path.starts_with(checkpoints)) continue;
    newest = std::max(newest, run::checkpoint_step(path.substr(checkpoints.size())).value_or(-1));
  }
  return newest;
}

bool records_changes(const Tree& tree) {
  const auto config = tree.find("run/config.yaml");
  return config != tree.end() && config->second.text.find("\nx-changes:") != std::string::npos;
}

// What a process that resumes the run in `folder` begins with, once it has put the folder in order: nothing else
// decides how it goes on. As text, without what it only appends to. `config` is what it writes as config.yaml.
std::string what_resuming_begins_with(const fs::path& folder, std::int64_t newest, const std::string& config) {
  const fs::path run = folder / "run";
  const std::optional<train::ResumePoint> point = train::find_resume_point(run);
  REQUIRE((point ? point->checkpoint.state.step : -1) == newest);
  run::RunFolderOptions options;
  options.resume = true;
  if (point) {
    const run::RunState& state = point->checkpoint.state;
    options.resumed = {state.step, run::best_folder(state), state.metrics_bytes};
  }
  run::RunFolder claimed = run::RunFolder::claim(run, options);
  claimed.begin(config);
  CHECK(claimed.warnings().empty());
  std::string text;
  for (const auto& [path, node] : tree_of(run)) {
    CHECK_FALSE(path.starts_with(".tmp-"));
    CHECK_FALSE(path.starts_with("checkpoints/."));
    if (node.kind == Node::Kind::link) CHECK(fs::exists(run / path));
    if (is_looked_at("run/" + path)) text += path + ": " + node.text + "\n";
  }
  return text;
}

// Of changes that a resumed process does not look at, a kill comes after every sixteenth. Of kills that leave the same
// to begin with, one is continued to the end of the run; with `options` where the folder does not record what they
// change. With a sanitizer one slice of `slices` of these is continued.
void check_kills(const LongRun& place, const RecordedRun& recorded, const Kept& whole, std::uint64_t slices = 3,
                 const std::vector<std::string>& options = {}) {
  std::mt19937 random(13);
  Disk disk = recorded.begin();
  std::set<std::string> begun;
  std::int64_t newest = newest_step(disk.tree());
  std::size_t count = 0;
  int kills = 0, unseen = 0;
  test::Slice slice(test::slices_with_sanitizer(slices));
  for (const Change& change : recorded.changes()) {
    ++count;
    disk.apply(change);
    if (!is_looked_at(disk.path_of(change)) && ++unseen % 16 != 0) continue;
    ++kills;
    const Tree left = disk.tree();
    INFO("killed after change " << count << " of " << recorded.changes().size() << ": " << to_string(change));
    write_tree(left, place.path("killed"));
    if (!left.contains("run")) continue;
    REQUIRE(newest_step(left) >= newest);  // there is always one that is as new
    newest = newest_step(left);
    const bool records = records_changes(left);
    const std::string config = records ? "config of a run with changes" : "config of the resumed run";
    if (!begun.insert(what_resuming_begins_with(place.path("killed"), newest, config)).second) continue;
    if (!slice.takes()) continue;
    write_tree(left, place.path("killed"));
    std::vector<std::string> again = {"--resume", "--workers", some_workers(random)};
    if (!records) again.insert(again.end(), options.begin(), options.end());
    place.complete("killed/run", again);
    REQUIRE(differences(whole, place.kept("killed/run")) == "");
  }
  CHECK(kills > 50);
  CHECK(begun.size() > 3);
}

void check_kills(bool ensemble) {
  const bool resumes = GENERATE(false, true);
  const LongRun place(45, ensemble ? three_members() : std::vector<std::string>());
  place.complete("whole");
  const Kept whole = place.kept("whole");
  const json summary = json::parse(whole.at("summary.json"));
  INFO(summary.dump(1));
  if (ensemble) {
    REQUIRE(summary["members"][1]["finished"] == "early_stopping");
    REQUIRE(summary["members"][1]["steps"] < 37);
    REQUIRE(summary["members"][0]["finished"].is_null());
    REQUIRE(summary["best"][1]["step"] != summary["best"][0]["step"]);
  } else {
    REQUIRE(summary["steps_skipped"] > 0);
  }
  // The process that begins the run, or the one that continues it at step 37.
  if (resumes) {
    fs::create_directory(place.path("recorded"));
    place.complete("recorded/run", {"--max-steps", "37"});
  }
  check_kills(place, RecordedRun(place, "recorded", {"--resume"}), whole, ensemble ? 6 : 3);
}

}  // namespace

TEST_CASE("a run that is killed between any two of its changes continues to the same bits", "[run]") {
  check_kills(false);
}

TEST_CASE("an ensemble that is killed between any two of its changes continues to the same bits", "[run]") {
  check_kills(true);
}

TEST_CASE("a run that is killed while it begins to change, or after, goes on with the change", "[run]") {
  const LongRun place(45);
  const std::vector<std::string> change = {"--change", "optimizer.learning_rate={linear: {init_value: 0.01}}",
                                           "--change", "optimizer.clip_by_global_norm=0.5"};
  std::vector<std::string> resume = {"--resume"};
  resume.insert(resume.end(), change.begin(), change.end());
  fs::create_directory(place.path("recorded"));
  for (const char* const run : {"whole", "recorded/run"}) place.complete(run, {"--max-steps", "37"});
  place.complete("whole", resume);
  const Kept whole = place.kept("whole");
  REQUIRE(json::parse(whole.at("summary.json"))["changes"].size() == 2);
  check_kills(place, RecordedRun(place, "recorded", resume), whole, 3, change);
}

// PMAPTRAIN_KILLS says how often it is killed; without it 20 times, and 10 times with a sanitizer.
TEST_CASE("a run that is killed again and again continues to the same bits", "[run]") {
  const LongRun place(103);
  place.complete("whole");
  const Kept whole = place.kept("whole");
  REQUIRE(json::parse(whole.at("summary.json"))["steps_skipped"] > 0);
  REQUIRE(json::parse(whole.at("summary.json"))["best"]["step"] < 103);
  std::mt19937 random(13);
  for (int kills = 0, folders = 0; kills < wanted_kills(); ++folders) {
    Tree left;
    std::string told = "seed 13, folder " + std::to_string(folders) + ", killed after";
    for (auto times = 1 + random() % 4; times > 0 && kills < wanted_kills(); --times, ++kills) {
      write_tree(left, place.path("killed"));
      const RecordedRun recorded(place, "killed", {"--resume", "--workers", some_workers(random)});
      const std::size_t count = random() % (recorded.changes().size() + 1);
      told += " " + std::to_string(count) + " of " + std::to_string(recorded.changes().size());
      left = recorded.killed_after(count);
    }
    INFO(told);
    write_tree(left, place.path("killed"));
    place.complete("killed/run", {"--resume", "--workers", some_workers(random)});
    REQUIRE(differences(whole, place.kept("killed/run")) == "");
  }
}
