// A power loss at any moment: a recorded trace of what runs wrote is replayed up to each of its calls, and of what was
// not flushed to the disk by then a part is lost. Whatever is left, a checkpoint that had been committed is found, no
// damaged one is believed, and the run continues to the same end.
//
// The model: fsync of a file makes its bytes durable, fsync of a directory its entries, nothing else does. Of later
// writes to a file some arrive, in any order, torn, or as zeros; of later changes to a directory some do, in any order
// (a rename does as a whole). So a renamed file may be there without its bytes.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/train/resume.h"
#include "tests/app/long_run.h"
#include "tests/app/trace.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
namespace fs = std::filesystem;
namespace train = pmaptrain::train;

namespace {

using Random = std::mt19937;

bool chance(Random& random, unsigned percent) { return random() % 100 < percent; }

// ---- files and directories that remember what is durable -----------------------------------------------------------

void write_at(std::string& file, std::size_t at, const std::string& bytes) {
  if (file.size() < at + bytes.size()) file.resize(at + bytes.size());
  file.replace(at, bytes.size(), bytes);
}

struct File {
  std::string durable, now;
  std::vector<Record> pending;  // writes and truncations since the last sync

  void apply(const Record& record) {
    change(now, record);
    pending.push_back(record);
  }
  static void change(std::string& file, const Record& record) {
    if (record.call == "write") write_at(file, record.at, record.bytes);
    if (record.call == "truncate") file.resize(record.at);
  }
  void sync() {
    durable = now;
    pending.clear();
  }
  std::string after_loss(Random& random) const {
    if (chance(random, 25)) return durable;
    if (chance(random, 25)) return now;
    std::string left = durable;
    for (Record record : pending) {
      if (chance(random, 30)) continue;
      if (chance(random, 30)) {  // from somewhere on only the size arrived
        const std::size_t torn = random() % (record.bytes.size() + 1);
        std::fill(record.bytes.begin() + static_cast<std::ptrdiff_t>(torn), record.bytes.end(), '\0');
      }
      if (chance(random, 20)) record.bytes.resize(random() % (record.bytes.size() + 1));
      change(left, record);
    }
    return left;
  }
};

using Entries = std::map<std::string, Number>;

struct Folder {
  Entries durable, now;
  std::vector<std::map<std::string, std::pair<Number, Number>>> pending;  // changes: by name, before and after; 0: none

  void apply(std::map<std::string, std::pair<Number, Number>> change) {
    set(now, change);
    pending.push_back(std::move(change));
  }
  static void set(Entries& entries, const std::map<std::string, std::pair<Number, Number>>& change) {
    for (const auto& [name, values] : change) {
      // What goes is only what the call took away.
      if (values.second != 0) entries[name] = values.second;
      if (values.second == 0 && entries.contains(name) && entries[name] == values.first) entries.erase(name);
    }
  }
  void sync() {
    durable = now;
    pending.clear();
  }
  Entries after_loss(Random& random) const {
    if (chance(random, 25)) return durable;
    if (chance(random, 25)) return now;
    Entries left = durable;
    for (const auto& change : pending) {
      if (chance(random, 50)) set(left, change);
    }
    return left;
  }
};

class Disk {
 public:
  // `top`: the number of the directory that is there, empty, before anything is written.
  explicit Disk(Number top) : top_(top) { folders_[top]; }

  void apply(const Record& record) {
    if (record.call == "sync") {
      if (files_.contains(record.of)) files_[record.of].sync();
      if (folders_.contains(record.of)) folders_[record.of].sync();
    } else if (record.call == "write" || record.call == "truncate") {
      files_.at(record.of).apply(record);
    } else {
      change_folder(folders_.at(record.of), record);
    }
  }

  // Makes in `at` what a power loss now may leave.
  void lose_power(const fs::path& at, Random& random) const { write(top_, at, &random); }
  // Makes in `at` what there is.
  void write_all(const fs::path& at) const { write(top_, at, nullptr); }

  // The durable entries of a directory below the top, where its path is durable too and still leads there.
  Entries durable(const std::vector<std::string>& path) const {
    Number at = top_;
    for (const std::string& name : path) {
      const Folder& folder = folders_.at(at);
      if (!folder.durable.contains(name) || !folder.now.contains(name)) return {};
      if (folder.durable.at(name) != folder.now.at(name)) return {};
      at = folder.now.at(name);
    }
    return folders_.at(at).durable;
  }

 private:
  void change_folder(Folder& folder, const Record& record) {
    const auto number_of = [&](const std::string& name) {
      const auto found = folder.now.find(name);
      return found != folder.now.end() ? found->second : 0;
    };
    const Number first = number_of(record.name), second = number_of(record.other);
    if (record.call == "create") files_[record.made] = {};
    if (record.call == "mkdir") folders_[record.made] = {};
    if (record.call == "link") links_[record.made] = record.other;
    if (record.made != 0) folder.apply({{record.name, {first, record.made}}});
    if (record.call == "rename") folder.apply({{record.name, {first, 0}}, {record.other, {second, first}}});
    if (record.call == "exchange") folder.apply({{record.name, {first, second}}, {record.other, {second, first}}});
    if (record.call == "unlink") folder.apply({{record.name, {first, 0}}});
  }

  void write(Number folder, const fs::path& at, Random* random) const {
    fs::create_directory(at);
    const Folder& from = folders_.at(folder);
    for (const auto& [name, number] : random != nullptr ? from.after_loss(*random) : from.now) {
      if (const auto file = files_.find(number); file != files_.end()) {
        pmaptrain::test::write_text(at / name, random != nullptr ? file->second.after_loss(*random) : file->second.now);
      } else if (const auto link = links_.find(number); link != links_.end()) {
        fs::create_symlink(link->second, at / name);
      } else {
        write(number, at / name, random);
      }
    }
  }

  Number top_;
  std::map<Number, File> files_;
  std::map<Number, Folder> folders_;
  std::map<Number, std::string> links_;
};

// ---- what is found after a loss ------------------------------------------------------------------------------------

// A checkpoint as it was when it got its name.
struct Committed {
  std::map<std::string, std::string> files;
  std::string metrics;  // as far as its state says
};

class Trace {
 public:
  Trace() : top_(folder_ / "traced") { fs::create_directory(top_); }

  const fs::path& top() const { return top_; }
  // Runs a program and records, after what ran before.
  void run(const std::vector<std::string>& command) {
    const Finished result = Process(traced(command, folder_ / "trace", top_.string())).wait();
    INFO(result.err);
    REQUIRE(result.status == 0);
  }
  std::vector<Record> records() const { return read_trace(folder_ / "trace"); }
  Disk disk() const {
    const std::vector<Record> all = records();
    return Disk(all.at(0).of);
  }

 private:
  TemporaryFolder folder_;
  fs::path top_;
};

std::string text_of(const fs::path& path) { return fs::exists(path) ? read_text(path) : ""; }

// Checks what a loss has left of the run in `run`; `least`: the newest step that is durable, -1 where none is.
// Returns the step that the run continues from.
std::optional<std::int64_t> check_left(const fs::path& run, const std::vector<Committed>& committed,
                                       std::int64_t least) {
  std::optional<train::ResumePoint> point;
  REQUIRE_NOTHROW(point = train::find_resume_point(run));
  if (!point) {
    CHECK(least == -1);
    return std::nullopt;
  }
  const train::RunState& state = point->checkpoint.state;
  CHECK(state.step >= least);
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(point->checkpoint.folder)) {
    files[entry.path().filename().string()] = read_text(entry.path());
  }
  const auto written = std::find_if(committed.begin(), committed.end(),
                                    [&](const Committed& checkpoint) { return checkpoint.files == files; });
  REQUIRE(written != committed.end());
  CHECK(written->metrics.size() == state.metrics_bytes);
  CHECK(text_of(run / "metrics.jsonl").starts_with(written->metrics));
  for (const char* const link : {"last", "best"}) {
    const fs::path path = run / "checkpoints" / link;
    if (fs::is_symlink(path)) CHECK_NOTHROW(train::load_checkpoint(path));
  }
  CHECK(fs::exists(run / ".pmaptrain"));
  CHECK(fs::exists(run / "config.yaml"));
  return state.step;
}

}  // namespace

TEST_CASE("whatever a power loss leaves, a committed checkpoint is found and continues to the same bits", "[app]") {
  const LongRun place(45);
  seconds_of(place, "whole");
  const Kept whole = place.kept("whole");
  // A run that stops, goes on, and is begun anew; and the trace of it all.
  Trace trace;
  const fs::path run = trace.top() / "run";
  const auto run_traced = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = place.command("", more);
    command[3] = run.string();
    command.insert(command.begin(), binary_path());
    trace.run(command);
  };
  run_traced({"--max-steps", "23"});
  run_traced({"--resume"});
  // A file of somebody else's keeps the folder of checkpoints when the run is replaced.
  trace.run({"/bin/bash", "-c", ": >" + (run / "checkpoints/notes.txt").string()});
  run_traced({"--overwrite"});

  Disk disk = trace.disk();
  std::vector<Committed> committed;
  Random random(15);
  const TemporaryFolder losses;
  int states = 0, resumed = 0;
  Number run_folder = 0, others = 0;
  std::set<std::optional<std::int64_t>> found;
  for (const Record& record : trace.records()) {
    // What gets its name is a checkpoint from here on.
    const bool commits =
        (record.call == "rename" || record.call == "exchange") && record.name.starts_with(".tmp-step-");
    disk.apply(record);
    if (commits) {
      const fs::path now = losses / "now";
      fs::remove_all(now);
      disk.write_all(now);
      Committed checkpoint;
      const fs::path folder = now / "run/checkpoints" / record.other;
      for (const auto& entry : fs::directory_iterator(folder)) {
        checkpoint.files[entry.path().filename().string()] = read_text(entry.path());
      }
      const std::uint64_t bytes = train::load_run_state(folder).metrics_bytes;
      checkpoint.metrics = read_text(now / "run/metrics.jsonl").substr(0, bytes);
      committed.push_back(std::move(checkpoint));
    }
    std::int64_t least = -1;
    for (const auto& [name, number] : disk.durable({"run", "checkpoints"})) {
      least = std::max(least, train::checkpoint_step(name).value_or(-1));
    }
    // In the run folder itself there are few changes, and each of them matters.
    if (record.call == "mkdir" && record.name == "run") run_folder = record.made;
    const int all = record.of == run_folder ? 6 : static_cast<int>(++others % 2);
    for (int tries = 0; tries < all; ++tries, ++states) {
      const fs::path lost = losses / "lost";
      INFO("state " << states << " of seed 15, after " << record.call << " " << record.of << " " << record.name << " "
                    << record.other);
      fs::remove_all(lost);
      disk.lose_power(lost, random);
      found.insert(check_left(lost / "run", committed, least));
      if (states % 61 != 30) continue;
      ++resumed;
      fs::remove_all(place.path("resumed"));
      if (fs::exists(lost / "run")) fs::rename(lost / "run", place.path("resumed"));
      const Finished result = run_binary(place.command("resumed", {"--resume"}));
      INFO(result.err);
      REQUIRE(result.status == 0);
      CHECK(differences(whole, place.kept("resumed")) == "");
    }
  }
  // The model is the file system: without a loss, the trace gives what there is.
  fs::remove_all(losses / "now");
  disk.write_all(losses / "now");
  CHECK(pmaptrain::test::listing(losses / "now") == pmaptrain::test::listing(trace.top()));
  CHECK(states >= 200);
  CHECK(resumed >= 5);
  CHECK(found.size() >= 6);
}
