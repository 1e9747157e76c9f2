// The report that stands below a run.
#include "core/run/records/final_report.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "core/run/records/records.h"
#include "tests/catch.h"
#include "tests/run/ended.h"

using namespace pmaptrain;
using namespace pmaptrain::run;
using testing::ended;

TEST_CASE("learned values stand beside the true ones, and long parameters are abbreviated", "[run]") {
  Ended event = ended();
  event.members[0].final_measures.clear();
  event.run_dir.clear();
  event.members[0].comparisons.push_back({"dense_0.bias", {0}, {0.71}, {0.7}});
  event.members[0].comparisons.push_back(
      {"dense_0.kernel", std::vector<double>(10, 0.0), std::vector<double>(10, 1.5), {}});
  const std::string report = final_report(event);
  CHECK(report.find("                initial  learned     true     error\n"
                    "  dense_0.bias   0.0000  0.71000  0.70000  0.010000\n") != std::string::npos);
  CHECK(report.find("  dense_0.kernel[7]   0.0000   1.5000  1.5000\n"
                    "  dense_0.kernel: 2 more values; largest change 1.5000\n") != std::string::npos);
  CHECK(report.find("kernel[8]") == std::string::npos);
}

TEST_CASE("a report shows no error of a value whose truth is absent", "[run]") {
  Ended event = ended();
  event.members[0].comparisons.push_back(
      {"w", std::vector<double>(12, 0.0), std::vector<double>(12, 1.5), {1.0, 1.25}});
  const std::string report = final_report(event);
  CHECK(report.find("  w[1]   0.0000   1.5000  1.2500  0.25000\n"
                    "  w[2]   0.0000   1.5000       -        -\n") != std::string::npos);
  CHECK(report.find("nan") == std::string::npos);
}

TEST_CASE("a report says why training has no value of metrics of evaluations", "[run]") {
  Ended event = ended();
  event.members[0].final_measures = {{"train", {{"loss", 1.0}}},
                                     {"test", {{"loss", 1.0}, {"roc_auc", 0.5}, {"average_precision", 0.25}}}};
  CHECK(
      final_report(event).find(
          "\nroc_auc, average_precision are computed in evaluations alone; pmaptrain eval RUN --split train has those "
          "of train\n") != std::string::npos);
  event.members[0].final_measures = {{"train", {{"loss", 1.0}}}, {"test", {{"loss", 1.0}}}};
  CHECK(final_report(event).find("evaluations alone") == std::string::npos);
}

TEST_CASE("a class has one line of at most 40 columns in a report, whatever its name holds", "[run]") {
  Ended event = ended();
  event.classes = {"one\r\ntwo\t\x1b[31m", std::string(200, 'x') + std::string(100, 'y')};
  event.members[0].final_measures = {{"test", {{"loss", 1.0}, {"f1_0", 0.5}, {"f1_1", 0.25}}}};
  event.members[0].confusions = {{"test", {{2, 0}, {1, 1}}}};
  const std::string report = final_report(event);
  CHECK(report.find("  f1_0 (one\\r\\ntwo\\t\\x1b[31m)  f1_1 (xxxxxxxxxxxxxxxxxxxxxxxxx...yyyyyyyyyyyy)\n") !=
        std::string::npos);
  CHECK(report.find("\n  one\\r\\ntwo\\t\\x1b[31m" + std::string(41, ' ') + "2") != std::string::npos);
  CHECK(report.find('\t') == std::string::npos);
  CHECK(report.find('\x1b') == std::string::npos);
}

TEST_CASE("a report in colour is green where all is done, yellow where a run was stopped, red where it failed",
          "[run]") {
  Ended event = ended();
  CHECK(final_report(event, true).starts_with("\x1b[1;32mdone\x1b[0m after 20 steps"));
  event.status = "stopped";
  event.reason = "max_steps";
  CHECK(final_report(event, true).starts_with("\x1b[1;33mstopped at --max-steps\x1b[0m after 20 steps"));
  event.status = "failed";
  event.reason = "guard";
  event.exit_status = 5;
  CHECK(final_report(event, true).starts_with("\x1b[1;31mstopped by a guard\x1b[0m after 20 steps"));
}

TEST_CASE("the report counts the steps that were skipped", "[run]") {
  Ended event = ended();
  event.members[0].steps_skipped = 2;
  CHECK(final_report(event).starts_with("done after 20 steps, 2 of them skipped (5 epochs, 2,560 examples, 80 "));
  CHECK(nlohmann::json::parse(summary_json(event, "1"))["steps_skipped"] == 2);
}

TEST_CASE("a narrow report has whole words, and a row for each measure where a row for each split is too wide",
          "[run]") {
  Ended event = ended();
  event.reason = "max_steps";
  event.status = "stopped";
  const std::string wide = final_report(event), narrow = final_report(event, false, 40);
  const auto words = [](const std::string& text) {
    std::istringstream in(text.substr(0, text.find("\n\n")));
    return std::vector<std::string>(std::istream_iterator<std::string>(in), {});
  };
  CHECK(words(narrow) == words(wide));
  std::istringstream lines(narrow);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 40);
  CHECK(final_report(event, false, 1000) == wide);
  CHECK(final_report(event, true, 24).starts_with("\x1b[1;33mstopped at --max-steps\x1b[0m\n  after 20 steps"));

  const Measures measures = {{"loss", 0.25}, {"accuracy", 0.5}, {"mean_absolute_error", 0.125}};
  event.members = {{{{"train", measures}, {"test", measures}}, std::nullopt, 20, 0, "", {}}};
  CHECK(final_report(event, false, 80).find("test   ") != std::string::npos);
  CHECK(final_report(event, false, 39).find("mean_absolute_error  0.12500  0.12500\n") != std::string::npos);
}

TEST_CASE("a table that is too wide has the columns that do not fit below the others", "[run]") {
  Ended event = ended();
  const Measures measures = {{"loss", 0.25}, {"mean_absolute_error", 0.125}};
  event.members = {{{{"train", measures}, {"validation", measures}, {"test", measures}}, std::nullopt, 20, 0, "", {}}};
  event.members[0].confusions = {{"test", {{8, 2, 0}, {1, 9, 0}, {0, 0, 7}}}};
  event.classes = {"cat", "dog", "bird"};
  const auto below = [](const std::string& report) { return report.substr(report.find("\n\n")); };
  CHECK(below(final_report(event, false, 39)) == R"(

                         train
  loss                 0.25000
  mean_absolute_error  0.12500

                       validation
  loss                    0.25000
  mean_absolute_error     0.12500

                          test
  loss                 0.25000
  mean_absolute_error  0.12500

  test: true \ predicted  0  1  2
  0 cat                   8  2  0
  1 dog                   1  9  0
  2 bird                  0  0  7

run folder: runs/cnn
)");
}

TEST_CASE("the report says why a run ended before its end", "[run]") {
  Ended event = ended();
  event.status = "stopped";
  event.reason = "signal";
  event.steps = event.epochs = 1;
  CHECK(final_report(event).starts_with("stopped by a signal after 1 step (1 epoch, "));
  event.reason = "max_steps";
  CHECK(final_report(event).starts_with("stopped at --max-steps after "));
}

TEST_CASE("the report of an ensemble has what its members learned of the parameters that are compared", "[run]") {
  const auto report = [](std::size_t members, int columns) {
    Ended end = ended();
    end.is_ensemble = true;
    end.members.assign(members, {});
    for (std::size_t m = 0; m < members; ++m) {
      const double learned = static_cast<double>(m) / 2;
      end.members[m].comparisons = {{"a.bias", {0.0}, {learned}, {}},
                                    {"a.kernel", {1.0, learned}, {3.0, 4.0}, {2.5, 3.5}}};
    }
    const std::string text = final_report(end, false, columns);
    return text.substr(text.find("\n\n") + 2, text.find("\n\nrun folder") - text.find("\n\n") - 1);
  };
  CHECK(report(2, 0) == R"(  learned      initial  member 0  member 1    true
  a.bias        0.0000    0.0000   0.50000       -
  a.kernel[0]        -    3.0000    3.0000  2.5000
  a.kernel[1]        -    4.0000    4.0000  3.5000
)");
  CHECK(report(2, 50) == report(2, 0));
  CHECK(report(2, 40) == R"(  learned      initial   least   median
  a.bias        0.0000  0.0000  0.25000
  a.kernel[0]        -  3.0000   3.0000
  a.kernel[1]        -  4.0000   4.0000

  learned      largest    true
  a.bias       0.50000       -
  a.kernel[0]   3.0000  2.5000
  a.kernel[1]   4.0000  3.5000
)");
  CHECK(report(9, 0).find("a.bias        0.0000  0.0000  2.0000   4.0000       -\n") != std::string::npos);
}

TEST_CASE("the table of the members is no wider than the terminal", "[run]") {
  Ended event = ended();
  event.is_ensemble = true;
  event.run_dir.clear();
  const Measures measures = {{"loss", 0.25}, {"accuracy", 0.5}, {"mean_absolute_error", 0.125}};
  event.members.assign(3, {{{"train", measures}, {"test", measures}}, std::nullopt, 20, 0, "", {}});
  const auto widest = [](const std::string& report) {
    std::istringstream lines(report.substr(report.find("\n\n")));
    std::size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return static_cast<int>(most);
  };
  const std::string unlimited = final_report(event), narrow = final_report(event, false, 64);
  const int width = widest(unlimited);
  CHECK(width > 64);
  CHECK(final_report(event, false, width) == unlimited);
  const auto table_of = [](const std::string& report) { return report.substr(report.find("\n\n")); };
  CHECK(table_of(final_report(event, false, width - 1)) == table_of(narrow));
  CHECK(unlimited.find("member 2") != std::string::npos);
  CHECK(narrow.find("member 2") == std::string::npos);
  CHECK(narrow.find("median") != std::string::npos);
  CHECK(widest(narrow) <= 64);
}
