// A power loss at any moment: what runs changed is recorded and replayed up to each of the changes, and of what was not
// flushed to the disk by then a part is lost (tests/run/disk.h). Whatever is left, a checkpoint that had been
// committed is found, no damaged one is believed, and the run continues to the same end.
#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <set>

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/train/resume.h"
#include "tests/catch.h"
#include "tests/run/disk.h"
#include "tests/slice.h"
#include "tests/train/long_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

namespace {

// A checkpoint as it was when it got its name.
struct Committed {
  std::map<std::string, std::string> files;
  std::string metrics;  // as far as its state says
};

// The files of the checkpoint of this name.
std::map<std::string, std::string> files_of(const Tree& tree, const std::string& name) {
  std::map<std::string, std::string> files;
  const std::string folder = "run/checkpoints/" + name + "/";
  for (auto node = tree.lower_bound(folder); node != tree.end() && node->first.starts_with(folder); ++node) {
    files[node->first.substr(folder.size())] = node->second.text;
  }
  return files;
}

Committed committed_as(const Tree& tree, const std::string& name) {
  Committed checkpoint{files_of(tree, name), ""};
  const auto bytes = nlohmann::json::parse(checkpoint.files.at("state.json"))["metrics_bytes"].get<std::size_t>();
  checkpoint.metrics = tree.at("run/metrics.jsonl").text.substr(0, bytes);
  return checkpoint;
}

// Checks what a loss has left in `folder`; `least`: the newest step that is durable, -1 where none is. Returns the step
// that the run continues from.
std::optional<std::int64_t> check_left(const fs::path& folder, const Tree& left,
                                       const std::vector<Committed>& committed, std::int64_t least) {
  std::optional<train::ResumePoint> point;
  REQUIRE_NOTHROW(point = train::find_resume_point(folder / "run"));
  if (!point) {
    CHECK(least == -1);
    return std::nullopt;
  }
  const auto find = [&](const std::string& name) {
    const std::map<std::string, std::string> files = files_of(left, name);
    return std::find_if(committed.begin(), committed.end(), [&](const Committed& one) { return one.files == files; });
  };
  const run::RunState& state = point->checkpoint.state;
  CHECK(state.step >= least);
  const auto written = find(run::checkpoint_name(state.step));
  REQUIRE(written != committed.end());
  CHECK(written->metrics.size() == state.metrics_bytes);
  const auto metrics = left.find("run/metrics.jsonl");
  CHECK((metrics != left.end() && metrics->second.text.starts_with(written->metrics)));
  for (const char* const link : {"last", "best"}) {
    const auto target = left.find("run/checkpoints/" + std::string(link));
    if (target != left.end()) CHECK(find(target->second.text) != committed.end());
  }
  CHECK(left.contains("run/.pmaptrain"));
  CHECK(left.contains("run/config.yaml"));
  return state.step;
}

}  // namespace

TEST_CASE("whatever a power loss leaves, a committed checkpoint is found and continues to the same bits", "[run]") {
  const LongRun place(45);
  place.complete("whole");
  const Kept whole = place.kept("whole");
  // A run that stops, goes on, and is begun anew.
  fs::create_directory(place.path("recorded"));
  RecordingFileSystem recorder(place.path("recorded"));
  {
    const run::InstalledFileSystem installed(recorder);
    place.complete("recorded/run", {"--max-steps", "23"});
    place.complete("recorded/run", {"--resume"});
    // A file of somebody else's keeps the folder of checkpoints when the run is replaced.
    const std::string notes = place.path("recorded/run/checkpoints/notes.txt");
    const Descriptor file(recorder.open_at(AT_FDCWD, notes, O_WRONLY | O_CREAT | O_CLOEXEC));
    REQUIRE(file);
    place.complete("recorded/run", {"--overwrite"});
  }

  Disk disk;
  std::vector<Committed> committed;
  std::mt19937 random(15);
  TreeOnDisk lost(place.path("lost"));
  constexpr int slices = test::slices_with_sanitizer(4);
  test::Slice slice(slices);
  int states = 0, checked = 0, resumed = 0, in_unnamed = 0;
  Number run_folder = 0;
  std::set<std::optional<std::int64_t>> found;
  std::set<std::pair<std::int64_t, Tree>> seen;
  for (const Change& change : recorder.changes()) {
    disk.apply(change);
    // What gets its name is a checkpoint from here on.
    const bool renames = change.kind == Change::Kind::rename || change.kind == Change::Kind::exchange;
    if (renames && change.name.starts_with(".tmp-step-")) committed.push_back(committed_as(disk.tree(), change.other));
    std::int64_t least = -1;
    for (const auto& [name, number] : disk.durable({"run", "checkpoints"})) {
      least = std::max(least, run::checkpoint_step(name).value_or(-1));
    }
    // In the run folder itself there are few changes, and each of them matters.
    if (change.kind == Change::Kind::make_directory && change.name == "run") run_folder = change.made;
    // What is in a checkpoint without a name yet matters when it gets that.
    const bool unnamed = disk.path_of(change).starts_with("run/checkpoints/.tmp-");
    const int all = change.of == run_folder ? 12 : unnamed && ++in_unnamed % 8 != 0 ? 0 : 1;
    for (int tries = 0; tries < all; ++tries, ++states) {
      const Tree left = disk.after_loss(random);
      if (!seen.emplace(least, left).second || !slice.takes()) continue;
      INFO("state " << states << " of seed 15, after " << to_string(change));
      lost.become(left);
      found.insert(check_left(place.path("lost"), left, committed, least));
      if (++checked % 40 != 20) continue;
      ++resumed;
      write_tree(left, place.path("resumed"));
      place.complete("resumed/run", {"--resume"});
      CHECK(differences(whole, place.kept("resumed/run")) == "");
    }
  }
  CHECK(checked * slices >= 400);
  CHECK(resumed * slices >= 10);
  CHECK(found.size() >= 6);
}
