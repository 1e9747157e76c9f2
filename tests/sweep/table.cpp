// The table of a sweep, from its store and from the run folders of trials that have not ended.
#include "core/sweep/table.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "core/base/text.h"
#include "core/report/html/sections.h"
#include "core/sweep/report_table.h"
#include "core/sweep/store.h"
#include "core/sweep/summary.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/words.h"

using namespace pmaptrain;
namespace fs = std::filesystem;

namespace {

class StoredSweep {
 public:
  explicit StoredSweep(const std::string& search = "grid") {
    sweep::Store store = open();
    store.set_text("metric", "accuracy");
    store.set_text("mode", "max");
    store.set_text("value", "best");
    store.set_text("search", search);
  }

  static sweep::Row row(int number, sweep::Status status, std::optional<double> value = std::nullopt) {
    sweep::Row row;
    row.number = number;
    row.parameters = fmt::format(
        R"({{"optimizer.learning_rate":0.{},"width":{{"model.layers.0.dense":16}},"opt":{{"optimizer.adam":{{}}}}}})",
        number + 1);
    row.status = status;
    row.value = value;
    row.steps = status == sweep::Status::done ? 4000 : 0;
    row.seconds = status == sweep::Status::done ? 3.25 : 0;
    row.run_folder = fmt::format("trials/{:04}", number);
    return row;
  }

  sweep::Store open() const { return {folder.path(), sweep::Store::Access::write}; }
  void add(const std::vector<sweep::Row>& rows) const { open().add(rows); }
  void log(const std::string& run, const std::string& lines) const {
    fs::create_directories(folder.path() / run);
    folder.write(run + "/metrics.jsonl", lines);
  }
  sweep::Results results() const { return sweep::read_results(folder.path()); }

  test::TemporaryFolder folder;
};

using sweep::Status;

constexpr const char* logged =
    "{\"event\":\"eval\",\"step\":50,\"split\":\"validation\",\"accuracy\":0.875,\"seconds\":0.001}\n"
    "{\"event\":\"eval\",\"step\":100,\"split\":\"validation\",\"accuracy\":0.75,\"seconds\":0.001}\n"
    "{\"event\":\"step\",\"step\":120,\"loss\":0.5,\"seconds\":1.5}\n";

}  // namespace

TEST_CASE("a trial that was stopped or killed is shown with its best evaluation and its steps so far", "[sweep]") {
  const StoredSweep sweep;
  sweep.add({StoredSweep::row(0, Status::running), StoredSweep::row(1, Status::stopped),
             StoredSweep::row(2, Status::done, 0.5), StoredSweep::row(3, Status::waiting)});
  sweep.log("trials/0000", logged);
  const sweep::Results results = sweep.results();
  CHECK_FALSE(results.is_ended);
  CHECK(results.is_left);
  CHECK(sweep::progress_text(results) == "1 of 4 trials done");
  // The best is one that has ended, though another one has a better value so far.
  CHECK(sweep::best_of(results).score.number == 2);
  const sweep::TrialResult& killed = results.trials.at(1);
  CHECK(killed.score.number == 0);
  CHECK(killed.so_far == 0.875);
  CHECK(killed.runs.front().steps == 120);
  CHECK(killed.runs.front().seconds == 1.5);
  const std::string text = sweep::results_text(results, 0);
  CHECK(contains(text, "4 trials (1 done, 1 waiting, 2 stopped), ordered by the best accuracy of each run"));
  CHECK(contains(text, "  (0.875)"));
  CHECK(contains(text, "(accuracy): the best so far of a trial that has not ended\n"));
  CHECK(contains(sweep::results_json(results, 0), "\"so_far\": 0.875"));
}

TEST_CASE("the members of an ensemble that was killed have what each of them has logged, and one time", "[sweep]") {
  const StoredSweep sweep;
  std::vector<sweep::Row> rows;
  for (int i = 0; i < 3; ++i) {
    rows.push_back(StoredSweep::row(i, Status::running));
    rows.back().ensemble = 0;
    rows.back().member = i;
  }
  sweep.add(rows);
  sweep.log("ensembles/0000",
            "{\"event\":\"eval\",\"step\":50,\"member\":0,\"split\":\"test\",\"accuracy\":0.25}\n"
            "{\"event\":\"eval\",\"step\":50,\"member\":2,\"split\":\"test\",\"accuracy\":0.5}\n"
            "{\"event\":\"step\",\"step\":50,\"member\":2,\"loss\":0.5,\"seconds\":9.5}\n");
  const sweep::Results results = sweep.results();
  CHECK(results.trials.front().score.number == 2);
  CHECK(results.trials.front().so_far == 0.5);
  CHECK_FALSE(results.trials.back().so_far);
  const std::string text = sweep::results_text(results, 0);
  CHECK(contains(text, "9.5 s"));
  CHECK(contains(text, "  time: of an ensemble of 3 trials that are trained together\n"));
}

TEST_CASE("a run folder is named once it is there", "[sweep]") {
  const StoredSweep sweep;
  std::vector<sweep::Row> rows{StoredSweep::row(0, Status::running, 0.5), StoredSweep::row(1, Status::done, 0.25)};
  rows.front().ensemble = 3;
  sweep.add(rows);
  sweep.log("trials/0001", logged);
  const sweep::Results results = sweep.results();
  const std::string json = sweep::results_json(results, 0), csv = sweep::results_csv(results);
  CHECK(contains(json, "\"run_folder\": null"));
  CHECK(contains(json, "\"run_folder\": \"trials/0001\""));
  CHECK_FALSE(contains(json, "trials/0000"));
  CHECK(contains(csv, ",trials/0001,"));
  CHECK_FALSE(contains(csv, "trials/0000"));
  // The best so far is still a member of its ensemble.
  const std::string best = sweep::best_text(results, "sweeps/lr");
  CHECK(contains(best, "run folder: when it leaves the ensemble in sweeps/lr/ensembles/0003\nits config: "));
  CHECK(sweep::best_runs(results, sweep.folder.path(), 8).empty());
}

TEST_CASE("a report of a sweep that has not ended says so, and has the values so far", "[sweep][report]") {
  const StoredSweep sweep;
  sweep.add({StoredSweep::row(0, Status::running), StoredSweep::row(1, Status::done, 0.5),
             StoredSweep::row(2, Status::waiting)});
  sweep.log("trials/0000", logged);
  report::SweepTable table = sweep::report_table(sweep.results(), "sweeps/a b");
  std::string html = report::sweep_section(table);
  CHECK(contains(html,
                 "<p>This sweep has not ended: 1 of 3 trials done. No process runs it; to go on: "
                 "<code>pmaptrain sweep run &#39;sweeps/a b&#39; --resume</code></p>"));
  CHECK(contains(html, "The best so far is trial 1 with accuracy 0.5"));
  CHECK(contains(html,
                 "<td class=\"number\" data-label=\"accuracy\">(0.875)</td><td data-label=\"status\">stopped: "
                 "killed</td><td class=\"number\" data-label=\"steps\">120</td>"));
  CHECK(contains(html, "<p class=\"note\">(accuracy): so far, of a trial that has not ended.</p>"));
  table.unfinished->runs = true;
  html = report::sweep_section(table);
  CHECK(contains(html, "It runs; if it is stopped or killed, this goes on with it: <code>pmaptrain sweep run"));
  table.unfinished.reset();
  CHECK_FALSE(contains(report::sweep_section(table), "not ended:"));
}

TEST_CASE("the progress of a halving sweep names its rung", "[sweep]") {
  const StoredSweep sweep("successive_halving by a factor of 2 at steps 10, 20");
  std::vector<sweep::Row> rows;
  for (int i = 0; i < 4; ++i) {
    rows.push_back(StoredSweep::row(i, i == 1 ? Status::waiting : Status::done, 0.5));
    rows.back().rung = i < 2 ? 1 : 0;
  }
  sweep.add(rows);
  CHECK(sweep::progress_text(sweep.results()) == "rung 2 of 2: 1 of 2 trials done");
}

TEST_CASE("a table in a terminal of 80 columns keeps the status beside the trials", "[sweep]") {
  const StoredSweep sweep;
  std::vector<sweep::Row> rows;
  for (int i = 0; i < 12; ++i) rows.push_back(StoredSweep::row(i, Status::done, 0.5));
  rows[3].value.reset();
  rows[3].exit_status = static_cast<int>(ExitStatus::guard);
  rows[4] = StoredSweep::row(4, Status::failed);
  rows[4].error = "the data of this trial cannot be read, for a reason that takes many words";
  sweep.add(rows);
  const sweep::Results results = sweep.results();
  CHECK(contains(sweep::results_text(results, 0), "optimizer.learning_rate"));
  for (const int columns : {80, 60, 50}) {
    const std::string text = sweep::results_text(results, 0, false, columns);
    INFO(text);
    std::istringstream lines(text);
    int names = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("  trial ")) ++names;
      const bool is_table = line.starts_with("  ");
      if (is_table) CHECK(display_width(line) <= columns);
    }
    CHECK(names == 1);
    CHECK(contains(text, "status\n"));
    CHECK(contains(text, columns < 60 ? "lear...e" : "learning_rate"));
  }
  CHECK(contains(sweep::results_text(results, 0, false, 110), "done: a guard stopped it after 4,000 steps\n"));
  // In a pipe the last table has all trials.
  CHECK_FALSE(contains(sweep::write_summary(sweep.folder.path(), false, 1).text, " more\n"));
  CHECK(contains(sweep::write_summary(sweep.folder.path(), false, 1, 100).text, "  and 2 more\n"));
}

TEST_CASE("a report says why a trial has no value, as the table does", "[sweep]") {
  const StoredSweep sweep;
  sweep::Row stopped = StoredSweep::row(0, Status::done);
  stopped.steps = 1;
  stopped.exit_status = static_cast<int>(ExitStatus::guard);
  sweep.add({stopped});
  const report::SweepTable table = sweep::report_table(sweep.results(), sweep.folder.path());
  CHECK(table.trials.front().status == "done");
  CHECK(table.trials.front().status_text == "done: a guard stopped it after 1 step");
}
