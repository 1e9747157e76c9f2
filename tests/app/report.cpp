// report: what it writes of real runs, and what it refuses.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/sweep/store.h"
#include "tests/app/call.h"
#include "tests/catch.h"
#include "tests/session_run.h"

using namespace pmaptrain;
using nlohmann::json;
using tests::call;
using tests::contains;
using tests::Finished;
using tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

struct Reported {
  TemporaryFolder folder;
  std::string page = folder / "report.html";

  // A run of small images, in the folder `name`.
  std::string train(const std::string& name, const std::vector<std::string>& more = {}) const {
    const std::string config = folder.write("images.yaml", testing::small_images);
    std::vector<std::string> arguments{"run", config, "--run-dir", folder / name, "-q", "--progress", "none"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished run = call(arguments);
    INFO(run.err);
    REQUIRE(run.status == 0);
    return folder / name;
  }
  Finished report(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "report");
    arguments.insert(arguments.end(), {"--output", page});
    return call(arguments);
  }
  std::string html() const { return tests::read_text(page); }
  json data() const {
    const std::string text = html(), begin = "<script type=\"application/json\" id=\"data\">";
    const std::size_t at = text.find(begin) + begin.size();
    return json::parse(text.substr(at, text.find("</script>", at) - at));
  }
  std::string shown(std::string text) const {
    for (std::size_t at = 0; (at = text.find(folder.path().string(), at)) != std::string::npos;) {
      text.replace(at, folder.path().string().size(), "DIR");
    }
    return text;
  }
};

// The numbers of a table's row behind its header.
std::vector<double> row_of(const std::string& html, const std::string& head) {
  std::vector<double> numbers;
  const std::string cell = "<th scope=\"row\">" + head + "</th>";
  const std::size_t found = html.find(cell);
  REQUIRE(found != std::string::npos);
  const std::size_t begin = found + cell.size(), end = html.find("</tr>", begin);
  for (std::size_t at = begin; (at = html.find("\">", at)) < end; ++at) {
    numbers.push_back(std::strtod(html.c_str() + at + 2, nullptr));
  }
  return numbers;
}

}  // namespace

TEST_CASE("every number of metrics.jsonl is in the report, to the last digit", "[app]") {
  const Reported reported;
  const std::string run = reported.train("cnn");
  const Finished done = reported.report({run});
  CHECK(done.status == 0);
  CHECK(reported.shown(done.out).starts_with("DIR/report.html: report of DIR/cnn ("));
  std::map<std::string, json> series;  // by event, split and measure
  const json data = reported.data();
  for (const json& one : data["series"]) {
    const std::string key = one["event"].get<std::string>() + " " + one["split"].get<std::string>() + " ";
    series[key + one["measure"].get<std::string>()] = one;
  }
  std::map<std::string, std::size_t> next;
  std::istringstream lines(tests::read_text(run + "/metrics.jsonl"));
  std::size_t numbers = 0;
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    const std::string key = object["event"].get<std::string>() + " " + object.value("split", "train") + " ";
    for (const char* const measure : {"loss", "accuracy", "learning_rate", "grad_norm", "examples_per_second"}) {
      if (!object.contains(measure)) continue;
      const json& one = series.at(key + measure);
      const std::size_t at = next[key + measure]++;
      CHECK(one["value"].at(at) == object[measure]);
      CHECK(one["step"].at(at) == object["step"]);
      if (object["event"] == "step") CHECK(one["seconds"].at(at) == object["seconds"]);
      ++numbers;
    }
  }
  CHECK(numbers > 20);
  for (const auto& [key, one] : series) CHECK(one["value"].size() == next[key]);
  CHECK(reported.html().size() < 1'500'000);
}

TEST_CASE("a report has results, classes, pictures, plan and config of a run", "[app]") {
  const Reported reported;
  const std::string run = reported.train(
      "cnn", {"--set", "data.validation=0.25", "--set", "metrics=[accuracy, confusion_matrix, precision, recall]"});
  REQUIRE(reported.report({run}).status == 0);
  const std::string html = reported.html();
  for (const char* const id : {"curves", "results", "classes", "worst", "plan", "config"}) {
    CHECK(contains(html, "<section id=\"" + std::string(id) + "\""));
    CHECK(contains(html, "<a href=\"#" + std::string(id) + "\">"));
  }
  CHECK_FALSE(contains(html, "<section id=\"differences\""));
  CHECK_FALSE(contains(html, "<section id=\"trace\""));
  // The matrix is that of the last evaluation on validation: it is of the last checkpoint.
  const json summary = json::parse(tests::read_text(run + "/summary.json"));
  const json& matrix = summary["final"]["validation"]["confusion_matrix"];
  for (std::size_t truth = 0; truth < 3; ++truth) {
    CHECK(json(row_of(html, std::to_string(truth))) == json(matrix[truth].get<std::vector<double>>()));
  }
  CHECK(contains(html, "On validation, checkpoint step-00000004."));
  std::size_t pictures = 0;
  for (std::size_t at = 0; (at = html.find("<li><img src=\"data:image/png;base64,", at)) != std::string::npos; ++at)
    ++pictures;
  CHECK(pictures == 12);  // all of validation
  CHECK(contains(html,
                 "<th scope=\"row\">conv_0</th><td data-label=\"kind\">conv</td>"
                 "<td class=\"shape\" data-label=\"output of an example\">[6, 6, 3]</td>"));
  CHECK(contains(html, "learning_rate: 0.01"));
}

TEST_CASE("what a report predicts is what eval says", "[app]") {
  const Reported reported;
  const std::string run = reported.train("cnn", {"--set", "metrics=[accuracy, confusion_matrix]"});
  REQUIRE(reported.report({run}).status == 0);
  const json eval = json::parse(call({"eval", run, "--json"}).out);
  for (std::size_t truth = 0; truth < 3; ++truth) {
    CHECK(json(row_of(reported.html(), std::to_string(truth))) ==
          json(eval["confusion_matrix"][truth].get<std::vector<double>>()));
  }
  CHECK(contains(reported.html(), "On test, checkpoint step-00000004."));
}

TEST_CASE("a report of several runs overlays their curves and shows what differs", "[app]") {
  const Reported reported;
  const std::string a = reported.train("a"), b = reported.train("b", {"--set", "optimizer.learning_rate=0.1"});
  const std::string c = reported.train("c", {"--set", "model.layers.0.conv.features=5", "--seed", "3"});
  const Finished done = reported.report({a, b, c});
  CHECK(done.status == 0);
  CHECK(contains(done.out, "report of 3 runs ("));
  CHECK(reported.data()["owners"] == json({"a", "b", "c"}));
  const std::string html = reported.html();
  CHECK(contains(html,
                 "<th scope=\"row\">optimizer.learning_rate</th><td class=\"number\" data-label=\"a\">0.01</td>"
                 "<td class=\"number\" data-label=\"b\">0.1</td><td class=\"number\" data-label=\"c\">0.01</td>"));
  CHECK(contains(html, "<td class=\"number\" data-label=\"b\">0</td><td class=\"number\" data-label=\"c\">3</td>"));
  // A card for each run, of which one is the best.
  const std::size_t card = html.find("<li class=\"best\"><b>");
  CHECK(card != std::string::npos);
  CHECK(html.find("<li class=\"best\">", card + 1) == std::string::npos);
  CHECK(contains(html, "<th scope=\"row\">model.layers.0.conv.features</th>"));
  CHECK(contains(html, "What the checkpoints say of the data is the same."));
  CHECK(contains(html, "<title>a, b, c</title>"));
}

TEST_CASE("a report of a regression shows the examples with the largest errors as a table", "[app]") {
  const Reported reported;
  const std::string config = reported.folder.write(
      "c.yaml",
      "data: {source: {csv: {train: t.csv, target: y}}, batch_size: 4, validation: {share: 0.5}}\n"
      "mesh: {axes: {devices: 2}}\nmodel: {layers: [{dense: 1}]}\nloss: mean_squared_error\n"
      "optimizer: {sgd: {}, learning_rate: 0.01}\ntrain: {duration: 1 epochs}\n");
  std::string table = "x,y\n";
  for (int i = 0; i < 16; ++i) table += fmt::format("0.{},{}\n", i, i == 5 ? 100 : 0);
  reported.folder.write("t.csv", table);
  REQUIRE(call({"run", config, "--run-dir", reported.folder / "run", "-q", "--progress", "none"}).status == 0);
  REQUIRE(reported.report({reported.folder / "run"}).status == 0);
  CHECK(contains(reported.html(), "The examples of validation with the largest errors, of 8, checkpoint step-0000000"));
  const std::string head =
      "<th scope=\"col\" class=\"number\">predicted</th><th scope=\"col\" class=\"number\">error</th>"
      "<th scope=\"col\" class=\"number\">x</th>";
  CHECK(contains(reported.html(), head));
  CHECK(contains(reported.html(), "<th scope=\"col\">place</th>"));
  CHECK(contains(reported.html(), "<td data-label=\"place\">t.csv, line "));
  CHECK(contains(reported.html(), "<figcaption>y: predicted against true</figcaption>"));
  CHECK_FALSE(contains(reported.html(), "<section id=\"classes\""));
  // Where the data has moved, it is found as eval finds it.
  std::filesystem::create_directories(reported.folder / "moved");
  std::filesystem::rename(reported.folder / "t.csv", reported.folder / "moved/t.csv");
  const Finished without = reported.report({reported.folder / "run"});
  CHECK(contains(without.err, "note: run: there are no predictions: "));
  const Finished moved = reported.report({reported.folder / "run", "--data-root", reported.folder / "moved"});
  CHECK(moved.status == 0);
  CHECK_FALSE(contains(moved.err, "there are no predictions"));
  CHECK(contains(reported.html(), "<td data-label=\"place\">t.csv, line "));
  CHECK(reported.report({reported.folder / "run", "--data-root", reported.folder / "moved", "--without-data"}).err ==
        "error: --data-root and --without-data were both given\n  help: --without-data reads no data; leave one out\n");
}

TEST_CASE("a report without its data says so, and shows what the folder has", "[app]") {
  const Reported reported;
  const std::string config = reported.folder.write(
      "c.yaml",
      "data: {source: {csv: {train: t.csv, test: t.csv, target: y}}, batch_size: 4}\n"
      "mesh: {axes: {devices: 2}}\nmodel: {layers: [{dense: 2}]}\nloss: softmax_cross_entropy\n"
      "metrics: [confusion_matrix]\noptimizer: {sgd: {}, learning_rate: 0.01}\ntrain: {duration: 1 epochs}\n");
  reported.folder.write("t.csv", "x,y\n0.5,cat\n0.25,dog\n1.5,cat\n1.25,dog\n");
  const std::string run = reported.folder / "run";
  REQUIRE(call({"run", config, "--run-dir", run, "-q", "--progress", "none"}).status == 0);
  fs::remove(reported.folder / "t.csv");
  const Finished done = reported.report({run});
  CHECK(done.status == 0);
  CHECK(reported.shown(done.err) ==
        "note: run: there is no plan: cannot open 'DIR/t.csv': No such file or directory\n"
        "note: run: there are no predictions: cannot open 'DIR/t.csv': No such file or directory\n");
  const std::string html = reported.shown(reported.html());
  CHECK(contains(html, "There is no plan: cannot open &#39;DIR/t.csv&#39;: No such file or directory"));
  CHECK(contains(html, "There are no predictions: cannot open"));
  CHECK(contains(html, "On test, the last evaluation."));
  CHECK(contains(html, "<th scope=\"row\">dog</th>"));

  const Finished alone = reported.report({run, "--without-data"});
  CHECK(alone.status == 0);
  CHECK(alone.err.empty());
  CHECK(contains(reported.html(), "On test, the last evaluation."));
  CHECK_FALSE(contains(reported.html(), "<section id=\"plan\""));
}

TEST_CASE("a report takes the best checkpoint where there is one, and says so", "[app]") {
  const Reported reported;
  const std::string run = reported.train("cnn", {"--set", "train.checkpoint.best={metric: loss, mode: max}"});
  const json summary = json::parse(tests::read_text(run + "/summary.json"));
  const Finished best = reported.report({run});
  REQUIRE(best.status == 0);
  const std::int64_t step = summary["best"]["step"].get<std::int64_t>();
  CHECK(contains(reported.html(), fmt::format("checkpoint step-{:08}.", step)));
  if (step != 4) {
    CHECK(best.err ==
          fmt::format("note: cnn: this is the best checkpoint, step-{:08}; --checkpoint last takes the last one, "
                      "step-00000004\n",
                      step));
  }
  REQUIRE(reported.report({run, "--checkpoint", "last"}).status == 0);
  CHECK(contains(reported.html(), "checkpoint step-00000004."));
  const Finished none = reported.report({run, "--checkpoint", "77"});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "has no checkpoint '77'"));
}

TEST_CASE("a report of an ensemble shows its members", "[app]") {
  const Reported reported;
  const std::string run =
      reported.train("e", {"--set", "mesh.axes=[{replicas: 2}, {devices: 2}]", "--set", "data.axes=[devices]", "--set",
                           "ensemble={axis: replicas, vary: {seed: [0, 1]}}"});
  REQUIRE(reported.report({run}).status == 0);
  CHECK(reported.data()["owners"] == json({"e member 0", "e member 1"}));
  CHECK(contains(reported.html(), "aria-label=\"members on test\""));
}

TEST_CASE("a report shows the time of a trace by layer", "[app]") {
  const Reported reported;
  const std::string trace = reported.folder / "trace.json";
  const std::string run = reported.train("cnn", {"--trace", trace});
  REQUIRE(reported.report({run, "--trace", trace}).status == 0);
  const std::string html = reported.html();
  CHECK(contains(html, "<section id=\"trace\""));
  CHECK(contains(html, "Steps 2..4 of small_images: "));
  CHECK(contains(html, "<span>conv_0</span>"));

  const auto refusal = [&](const std::string& text) {
    const Finished done = reported.report({run, "--trace", reported.folder.write("bad.json", text)});
    return std::to_string(done.status) + " " + reported.shown(done.err);
  };
  const std::string whole = tests::read_text(trace);
  CHECK(refusal("{}") ==
        "3 error: 'DIR/bad.json' is no trace of pmaptrain\n  help: pmaptrain run CONFIG --trace FILE writes one\n");
  CHECK(refusal(whole.substr(0, whole.size() / 2)) ==
        "3 error: the trace 'DIR/bad.json' is not whole\n  help: trace the run again: pmaptrain run CONFIG --trace "
        "FILE\n");
  CHECK(refusal("{\"otherData\":{\"program\":\"pmaptrain\"},\n{\"ph\":\"X\",}\n]}\n") ==
        "3 DIR/bad.json:1: error: the trace is damaged\n  help: trace the run again: pmaptrain run CONFIG --trace "
        "FILE\n");
  CHECK(
      refusal("{\"otherData\":{\"program\":\"pmaptrain\",\"run\":\"a\",\"steps\":\"1..2\"},\n{\"ph\":\"X\",}\n]}\n") ==
      "3 DIR/bad.json:2: error: the trace is damaged\n  help: trace the run again: pmaptrain run CONFIG --trace "
      "FILE\n");
  const Finished none = reported.report({run, "--trace", reported.folder / "none.json"});
  CHECK(none.status == 2);
  CHECK(contains(none.err, "there is no file"));
  CHECK(contains(none.err, "help: pmaptrain run CONFIG --trace FILE writes one\n"));
}

TEST_CASE("report replaces reports alone, and refuses what it cannot read or write", "[app]") {
  const Reported reported;
  const std::string run = reported.train("cnn", {"--max-steps", "1"});
  CHECK(call({"report", run}).err ==
        "error: report needs --output FILE\n  help: what to write, such as --output report.html\n");
  CHECK(call({"report", "--output", reported.page}).err ==
        "error: pmaptrain report needs RUN\n  help: pmaptrain report runs/cnn --output report.html\n");
  const auto refusal = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"report", run};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Finished done = call(all);
    const std::string text = reported.shown(done.err);
    return std::to_string(done.status) +
           text.substr(text.find(" error: ") + 7, text.find('\n') - text.find(" error: ") - 7) +
           text.substr(text.find("\n  help: ") + 1);
  };
  const std::string other = reported.folder.write("notes.html", "mine");
  CHECK(refusal({"--output", other}) == "2 'DIR/notes.html' exists, and is no report  help: --overwrite replaces it\n");
  CHECK(tests::read_text(other) == "mine");
  CHECK(refusal({"--output", reported.folder / "none/r.html"}) ==
        "2 there is no folder 'DIR/none'  help: mkdir -p DIR/none\n");
  CHECK(refusal({"--output", run}) == "2 'DIR/cnn' is no regular file  help: name another file\n");
  CHECK(call({"report", run, "--without-data", "--output", other, "--overwrite"}).status == 0);
  CHECK(call({"report", run, "--without-data", "--output", other}).status == 0);  // now it is a report

  CHECK(reported.report({"runs/none"}).status == 2);
  test::write_text(run + "/metrics.jsonl", "{}\n");
  const Finished damaged = reported.report({run});
  CHECK(damaged.status == 3);
  CHECK(reported.shown(damaged.err).starts_with("DIR/cnn/metrics.jsonl:1: error: this is no line of metrics.jsonl"));
  fs::remove(run + "/metrics.jsonl");
  const Finished missing = reported.report({run});
  CHECK(missing.status == 3);
  CHECK(contains(reported.shown(missing.err), "error: there is no 'DIR/cnn/metrics.jsonl'\n"));
}

TEST_CASE("a report of a sweep shows its trials, and the runs of the best ones", "[app]") {
  const Reported reported;
  const std::string run = reported.train("best");
  const std::string folder = reported.folder / "sweeps/s";
  fs::create_directories(folder);
  {
    sweep::Store store(folder, sweep::Store::Access::write);
    store.set_text("metric", "accuracy");
    store.set_text("mode", "max");
    store.set_text("logarithmic", "optimizer.learning_rate");
    std::vector<sweep::Row> rows;
    for (int i = 0; i < 12; ++i) {
      sweep::Row row;
      row.number = i;
      row.parameters = fmt::format(R"({{"optimizer.learning_rate":0.{}}})", i + 1);
      row.status = sweep::Status::done;
      row.value = i == 3 ? 0.9 : 0.1 * (i % 7);
      row.run_folder = i == 3 ? "../../best" : fmt::format("trials/{:04}", i);
      rows.push_back(row);
    }
    store.add(rows);
    store.decide({{0, 3, 0, 10, 0.4, true}, {1, 3, 0, 20, 0.9, false}}, {});
  }
  const Finished finished = reported.report({folder});
  INFO(finished.err);
  REQUIRE(finished.status == 0);
  const std::string html = reported.html();
  CHECK(contains(html, "<title>sweep s"));
  CHECK(contains(html, "optimizer.learning_rate"));
  CHECK(reported.data()["owners"] == json({"best"}));
  CHECK_FALSE(contains(html, "sweep-2"));
  // A second sweep has a section of its own.
  const std::string other = reported.folder / "sweeps/other";
  fs::copy(folder, other, fs::copy_options::recursive);
  const Finished both = reported.report({folder, other});
  INFO(both.err);
  REQUIRE(both.status == 0);
  const std::string page = reported.html();
  CHECK(contains(page, "<title>sweep s, sweep other"));
  CHECK(contains(page, "<a href=\"#sweep\">Sweep s</a>\n<a href=\"#sweep-2\">Sweep other</a>\n"));
  CHECK(contains(page, "<section id=\"sweep-2\""));
  CHECK(contains(reported.shown(both.out), "report of 2 folders ("));
}
