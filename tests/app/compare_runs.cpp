// runs and diff: what they say of run folders, and what they refuse.
#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/descriptor.h"
#include "core/report/runs/listing.h"
#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain;
using nlohmann::json;
using tests::call;
using tests::contains;
using tests::Finished;
using tests::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

// Two runs of linear regression, in folders "lists/a" and "lists/b".
struct Runs {
  TemporaryFolder folder;
  std::string all = folder / "lists", a = folder / "lists/a", b = folder / "lists/b";

  Runs() {
    train(a, {});
    train(b, {"optimizer.learning_rate=0.1", "train.duration=20 epochs"});
  }
  static void train(const std::string& dir, const std::vector<std::string>& set) {
    std::vector<std::string> arguments{"run", tests::linear, "--run-dir", dir, "-q", "--progress", "none"};
    for (const std::string& setting : set) arguments.insert(arguments.end(), {"--set", setting});
    REQUIRE(call(arguments).status == 0);
  }
  // The output of a command, with the folder's path as DIR.
  std::string shown(std::string text) const {
    for (std::size_t at = 0; (at = text.find(folder.path().string(), at)) != std::string::npos;) {
      text.replace(at, folder.path().string().size(), "DIR");
    }
    return text;
  }
};

// Several spaces are one.
std::string squeezed(const std::string& text) {
  std::string out;
  for (const char letter : text) {
    if (letter != ' ' || !out.ends_with(' ')) out += letter;
  }
  return out;
}

std::vector<std::string> order(const Runs& runs, const std::string& key) {
  std::vector<std::string> names;
  for (const json& run : json::parse(call({"runs", runs.all, "--sort", key, "--json"}).out)) {
    names.push_back(fs::path(run["run"].get<std::string>()).filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("runs lists run folders with status, best value, age and size", "[app]") {
  const Runs runs;
  fs::create_directories(runs.folder / "lists/group/deeper");
  fs::copy(runs.a, runs.folder / "lists/group/deeper/c", fs::copy_options::recursive);
  fs::create_directory_symlink(runs.all, runs.folder / "lists/again");  // not followed

  const json list = json::parse(call({"runs", runs.all, "--json"}).out);
  REQUIRE(list.size() == 3);
  CHECK(list[0]["run"] == runs.a);
  CHECK(list[2]["run"] == runs.all + "/group/deeper/c");
  CHECK(list[0]["status"] == "done");
  CHECK(list[0]["reason"] == "duration");
  CHECK(list[0]["steps"] == 50);
  CHECK(list[0]["age_seconds"] >= 0);
  CHECK(list[0]["age_seconds"] < 100);
  CHECK(list[0]["bytes"] > 1000);
  // The best is the last mean of an epoch: there is nothing to evaluate on.
  std::string last;
  std::istringstream lines(tests::read_text(runs.a + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, "\"epoch\",")) last = line;
  }
  CHECK(list[0]["best"] ==
        json({{"metric", "loss"}, {"value", json::parse(last)["loss"]}, {"step", 50}, {"split", "train"}}));

  const Finished table = call({"runs", runs.all});
  CHECK(table.status == 0);
  CHECK(table.err.empty());
  CHECK(contains(table.out, "status"));
  CHECK(contains(table.out, runs.b));
  CHECK(contains(table.out, "loss 0.0"));
  // A run folder itself is a list of one.
  CHECK(json::parse(call({"runs", runs.a, "--json"}).out).size() == 1);
}

TEST_CASE("runs sorts by a column or by a measure", "[app]") {
  const Runs runs;
  CHECK(order(runs, "name") == std::vector<std::string>{"a", "b"});
  CHECK(order(runs, "steps") == std::vector<std::string>{"a", "b"});
  CHECK(order(runs, "best") == order(runs, "loss"));
  for (const auto& entry : std::filesystem::recursive_directory_iterator(runs.a)) {
    std::filesystem::last_write_time(entry, std::filesystem::last_write_time(entry) - std::chrono::minutes(1));
  }
  CHECK(order(runs, "age") == std::vector<std::string>{"b", "a"});
  const json rates = json::parse(call({"runs", runs.all, "--sort", "learning_rate", "--json"}).out);
  CHECK(rates[0]["best"]["metric"] == "learning_rate");
  CHECK(std::abs(rates[0]["best"]["value"].get<double>() - 0.05) < 1e-8);
  CHECK(runs.shown(call({"runs", runs.all, "--sort", "stepz"}).err) ==
        "--sort:1:8: error: no run in 'DIR/lists' has a measure 'stepz'\n"
        "    1 | --sort stepz\n"
        "      |        ^~~~~\n"
        "  help: did you mean 'steps'?\n");
  CHECK(contains(call({"runs", runs.all, "--sort", "accuracy"}).err,
                 "help: --sort takes name, status, steps, best, age, size or the name of a measure\n"));
}

TEST_CASE("runs tells runs that go on, were killed or are damaged", "[app]") {
  const Runs runs;
  fs::remove(runs.a + "/summary.json");
  const auto status = [&] { return json::parse(call({"runs", runs.a, "--json"}).out)[0]; };
  CHECK(status()["status"] == "killed");
  CHECK(status()["steps"] == 50);
  CHECK(status()["best"]["step"] == 50);
  {
    const Descriptor writer(::open((runs.a + "/.pmaptrain").c_str(), O_RDWR | O_CLOEXEC));
    REQUIRE(::flock(writer.get(), LOCK_EX | LOCK_NB) == 0);
    CHECK(status()["status"] == "running");
  }
  test::write_text(runs.b + "/summary.json", "{");
  const Finished listed = call({"runs", runs.all});
  CHECK(listed.status == 0);
  CHECK(contains(listed.out, "damaged"));
  CHECK(runs.shown(listed.err) ==
        "note: DIR/lists/b: 'DIR/lists/b/summary.json' is damaged\n"
        "note: to go on: pmaptrain run DIR/lists/a --resume\n");
  Runs::train(runs.folder / "c", {});
  test::write_text(runs.folder / "c/metrics.jsonl", "{}\n");
  CHECK(json::parse(call({"runs", runs.folder / "c", "--json"}).out)[0]["problem"] ==
        runs.folder / "c/metrics.jsonl" +
            ": this is no line of metrics.jsonl: it has no event and step, or a measure "
            "that is no number");
}

TEST_CASE("runs refuses what is no folder, and says where there are no runs", "[app]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("x", "");
  CHECK(call({"runs", file}).err ==
        "error: '" + file +
            "' is no folder\n  help: pmaptrain run writes runs to runs/NAME; pmaptrain runs DIR lists "
            "those in another folder\n");
  CHECK(call({"runs", folder / "none"}).status == 2);
  CHECK(contains(call({"runs", folder / "none"}).err, "error: there is no folder '" + folder / "none" + "'\n"));
  const std::string path = folder.path().string();
  CHECK(call({"runs", path}).out == "there are no runs in '" + path + "'\n");
  CHECK(call({"runs", path}).status == 0);
  CHECK(call({"runs", path, "--json"}).out == "[]\n");
}

TEST_CASE("ages are in the unit that says enough", "[app]") {
  CHECK(report::age_text(3.7) == "3 s");
  CHECK(report::age_text(150) == "2 min");
  CHECK(report::age_text(3 * 3600 + 59 * 60) == "3 h");
  CHECK(report::age_text(14.9 * 86400) == "14 d");
}

TEST_CASE("diff shows what differs in config, data and result", "[app]") {
  const Runs runs;
  const Finished text = call({"diff", runs.a, runs.b});
  CHECK(text.status == 0);
  CHECK(text.err.empty());
  const std::string shown = squeezed(runs.shown(text.out));
  CHECK(
      shown.starts_with("config\n DIR/lists/a DIR/lists/b\n optimizer.learning_rate 0.05 0.1\n"
                        " train.duration 50 epochs 20 epochs\n\ndata: no difference\n\nresult\n"));
  CHECK(contains(shown, "\n steps 50 20 -30\n"));
  CHECK_FALSE(contains(text.out, "status"));  // the same

  const json document = json::parse(call({"diff", runs.a, runs.b, "--json"}).out);
  CHECK(document["runs"] == json({runs.a, runs.b}));
  CHECK(document["config"][0] == json({{"key", "optimizer.learning_rate"}, {"before", 0.05}, {"after", 0.1}}));
  CHECK(document["config"][1]["before"] == "50 epochs");
  CHECK(document["data"] == json::array());
  const json summaries[] = {json::parse(tests::read_text(runs.a + "/summary.json")),
                            json::parse(tests::read_text(runs.b + "/summary.json"))};
  bool has_loss = false;
  for (const json& row : document["result"]) {
    if (row["what"] != "train loss") continue;
    has_loss = true;
    CHECK(row["before"] == summaries[0]["final"]["train"]["loss"]);
    CHECK(row["after"] == summaries[1]["final"]["train"]["loss"]);
  }
  CHECK(has_loss);
  CHECK(
      contains(call({"diff", runs.a, runs.a}).out, "config: no difference\n\ndata: no difference\n\nresult: no diff"));
}

TEST_CASE("diff shows data that is not the same, and says where it is not known", "[app]") {
  const Runs runs;
  Runs::train(runs.folder / "small", {"data.source.synthetic_linear.examples_per_device=50"});
  const json document = json::parse(call({"diff", runs.a, runs.folder / "small", "--json"}).out);
  CHECK(document["data"] == json::parse(R"([{"what": "training examples", "before": 800, "after": 400}])"));

  fs::remove_all(runs.b + "/checkpoints");
  const Finished without = call({"diff", runs.a, runs.b});
  CHECK(without.status == 0);
  CHECK_FALSE(contains(without.out, "data"));
  CHECK(runs.shown(without.err) == "note: the data is not compared: the run 'DIR/lists/b' has no checkpoint 'last'\n");
  CHECK(json::parse(call({"diff", runs.a, runs.b, "--json"}).out)["data"].is_null());
}

TEST_CASE("diff refuses what is no run, and files that are missing or damaged", "[app]") {
  const Runs runs;
  const Finished none = call({"diff", runs.a, "nope"});
  CHECK(none.status == 2);
  CHECK(none.err ==
        "error: 'nope' is not a run folder: there is no such folder\n  help: diff takes a folder that pmaptrain run "
        "wrote: runs/NAME\n");
  CHECK(call({"diff", runs.a}).err == "error: pmaptrain diff needs OTHER\n  help: pmaptrain diff runs/a runs/b\n");
  test::write_text(runs.b + "/summary.json", "{");
  const Finished summary = call({"diff", runs.a, runs.b});
  CHECK(summary.status == 3);
  CHECK(runs.shown(summary.err) ==
        "error: 'DIR/lists/b/summary.json' is damaged\n  help: pmaptrain run DIR/lists/b --resume writes it anew\n");
  fs::remove(runs.b + "/summary.json");
  fs::remove(runs.b + "/metrics.jsonl");
  CHECK(call({"diff", runs.a, runs.b}).status == 3);
  test::write_text(runs.b + "/config.yaml", "mesh: [");
  CHECK(call({"diff", runs.a, runs.b}).status == 2);
}
