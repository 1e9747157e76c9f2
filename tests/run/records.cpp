// What the recorders write: metrics.jsonl, log.txt and summary.json.
#include "core/run/records/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/run/records/event_record.h"
#include "core/run/records/final_report.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/golden.h"
#include "tests/run/ended.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::run;
using testing::ended;

namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;

Started started() { return {"cnn", "runs/cnn", 0, 20, 4, {"two layers"}}; }
Logged logged() { return {2, 1, {{"loss", 0.1}, {"accuracy", 0.5}}, 0.001, 1.25, 12345.4, 2.5}; }

// As a run without an ensemble emits it.
template <class E>
Event event_of(E of_member) {
  return std::vector<E>{std::move(of_member)};
}
std::string line_of(const Event& event) {
  const std::string line = metrics_lines(event);
  return line.substr(0, line.find('\n'));
}

}  // namespace

TEST_CASE("a logged step is one JSON line with the documented fields in order", "[run]") {
  CHECK(line_of(event_of(logged())) ==
        R"({"event":"step","step":2,"epoch":1,"loss":0.1,"accuracy":0.5,"learning_rate":0.001,"grad_norm":1.25,)"
        R"("examples_per_second":12345.4,"seconds":2.5})");
  CHECK(line_of(event_of(EpochEnded{4, 1, {{"loss", 1.0}}, 100, 3.0})) ==
        R"({"event":"epoch","step":4,"epoch":1,"loss":1.0,"examples":100,"seconds":3.0})");
  CHECK(line_of(event_of(Evaluated{4, 1, "test", {{"loss", 1.0}}, 50, 3.0})) ==
        R"({"event":"eval","step":4,"epoch":1,"split":"test","loss":1.0,"examples":50,"seconds":3.0})");
  CHECK(metrics_lines(Progressed{4, 1}).empty());
  CHECK(metrics_lines(started()).empty());
}

TEST_CASE("a change is one line with both values, and the summary lists all", "[run]") {
  const std::string schedule = "{linear: {init_value: 0.1, end_value: 0.0, transition: 16 steps}}";
  const Changed changed{4, 1, "optimizer.learning_rate", "1.0e-08", schedule};
  CHECK(line_of(changed) == R"({"event":"change","step":4,"epoch":1,"key":"optimizer.learning_rate","before":1e-08,)"
                            R"("value":")" +
                                schedule + R"("})");
  Ended event = ended();
  event.changes = {changed, {8, 2, "optimizer.adam.b1", "0.9", "0.8"}};
  const std::string text = summary_json(event, "1");
  const auto json = nlohmann::json::parse(text);
  REQUIRE(json["changes"].size() == 2);
  CHECK(json["changes"][0]["value"] == schedule);
  CHECK(json["changes"][1]["step"] == 8);
  CHECK(json["changes"][1]["value"] == 0.8);
  CHECK(summary_json(*parse_summary(text), "1") == text);  // of a run that is found finished
}

TEST_CASE("numbers in metrics.jsonl read back exactly", "[run]") {
  for (const double value : {1.0 / 3.0, 5e-324, 1.7976931348623157e308, static_cast<double>(0.1F), -0.0}) {
    Logged event = logged();
    event.measures = {{"loss", value}};
    const double back = nlohmann::json::parse(line_of(event_of(event)))["loss"].get<double>();
    CHECK(back == value);
    CHECK(std::signbit(back) == std::signbit(value));
  }
}

TEST_CASE("numbers that are not finite are null, and the line says so", "[run]") {
  Logged event = logged();
  event.grad_norm = std::numeric_limits<double>::infinity();
  const auto json = nlohmann::json::parse(line_of(event_of(event)));
  CHECK(json["grad_norm"].is_null());
  CHECK(json["finite"] == false);
  CHECK(json["loss"] == 0.1);
  CHECK_FALSE(nlohmann::json::parse(line_of(event_of(logged()))).contains("finite"));
}

TEST_CASE("the summary has the documented fields", "[run]") {
  const auto json = nlohmann::ordered_json::parse(summary_json(ended(), "1.2.3"));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"name", "run_dir", "config_hash", "parameters", "status", "reason",
                                         "exit_status", "steps", "steps_skipped", "epochs", "examples_seen",
                                         "examples_skipped", "final", "selected", "best", "seconds", "version"});
  CHECK(json["final"]["train"]["accuracy"] == 0.9);
  CHECK(json["final"]["test"].size() == 1);
  CHECK(json["best"].is_null());
  CHECK(json["steps_skipped"] == 0);

  Ended nan = ended();
  nan.members[0].final_measures[0].second[0].second = std::nan("");
  nan.members[0].best = Best{16, "accuracy", 0.91};
  const auto other = nlohmann::json::parse(summary_json(nan, "1.2.3"));
  CHECK(other["final"]["train"]["loss"].is_null());
  CHECK(other["finite"] == false);
  CHECK(other["best"]["step"] == 16);
}

TEST_CASE("the summary and the report have the checkpoint that commands use, beside the last one", "[run]") {
  Ended event = ended();
  CHECK(nlohmann::json::parse(summary_json(event, "1"))["selected"] ==
        nlohmann::json::parse(R"({"checkpoint": "last", "step": 20, "train": {"loss": 0.25, "accuracy": 0.9},)"
                              R"( "test": {"loss": 0.5}})"));
  CHECK_FALSE(test::contains(final_report(event), "(last)"));
  event.members[0].best = Best{8, "loss", 0.375};
  event.members[0].selected = Selected{"best", 8, {{"train", {{"loss", 0.75}}}, {"test", {{"loss", 0.375}}}}};
  event.members[0].selected->confusions["test"] = {{3, 1}, {0, 4}};
  const std::string text = summary_json(event, "1");
  const auto json = nlohmann::json::parse(text);
  CHECK(json["final"]["test"]["loss"] == 0.5);
  CHECK(json["selected"]["checkpoint"] == "best");
  CHECK(json["selected"]["step"] == 8);
  CHECK(json["selected"]["test"]["loss"] == 0.375);
  CHECK(json["selected"]["test"]["confusion_matrix"][0][1] == 1);
  CHECK(summary_json(*parse_summary(text), "1") == text);
  const std::string report = final_report(event);
  CHECK(test::contains(report,
                       "                   loss  accuracy\n"
                       "  train (best)  0.75000         -\n"
                       "  test (best)   0.37500         -\n"
                       "  train (last)  0.25000   0.90000\n"
                       "  test (last)   0.50000         -\n"));
  CHECK(test::contains(report, "test (best): true \\ predicted"));
  CHECK(test::contains(report, "best loss: 0.37500 after step 8, the checkpoint of eval, predict and export\n"));
  // Without other parameters nothing is shown twice.
  event.members[0].steps = 8;
  CHECK_FALSE(test::contains(final_report(event), "(last)"));
}

TEST_CASE("in a summary of an earlier version, test may be of the best parameters", "[run]") {
  Ended event = ended();
  event.members[0].best = Best{8, "loss", 0.375};
  auto json = nlohmann::ordered_json::parse(summary_json(event, "1"));
  json.erase("selected");
  json["test_parameters"] = "best";
  const auto read = parse_summary(json.dump());
  REQUIRE(read);
  CHECK(read->members[0].final_measures.size() == 1);
  REQUIRE(read->members[0].selected);
  CHECK(read->members[0].selected->step == 8);
  CHECK(read->members[0].selected->measures == SplitMeasures{{"test", {{"loss", 0.5}}}});
}

TEST_CASE("the log shows plain aligned lines and the report", "[run]") {
  const TemporaryFolder folder;
  {
    Records recorder(folder / "metrics.jsonl", folder / "log.txt", folder / "summary.json", "1", nullptr);
    recorder.on(started());
    recorder.on(Progressed{1, 1});
    recorder.on(event_of(logged()));
    recorder.on(event_of(EpochEnded{4, 1, {{"loss", 0.75}, {"accuracy", 0.5}}, 512, 2.0}));
    recorder.on(event_of(Evaluated{4, 1, "test", {{"loss", 0.8}, {"accuracy", 0.4}}, 1000, 2.5}));
    recorder.on(Warned{"a \x1b[31mwarning"});
    recorder.on(ended());
  }
  CHECK(read_text(folder / "log.txt") ==
        "two layers\n"
        "writing to runs/cnn\n"
        "step  2/20  epoch 1/5  loss 0.10000  accuracy 0.50000  grad_norm  1.2500  lr 0.001  12,345 examples/s\n"
        "epoch 1/5  train mean  loss 0.75000  accuracy 0.50000  512 examples  2.0 s\n"
        "epoch 1/5  test        loss 0.80000  accuracy 0.40000  1,000 examples  2.5 s\n"
        "warning: a ?[31mwarning\n"
        "\n"
        "done after 20 steps (5 epochs, 2,560 examples, 80 skipped) in 1:23\n"
        "\n"
        "            loss  accuracy\n"
        "  train  0.25000   0.90000\n"
        "  test   0.50000         -\n"
        "\n"
        "run folder: runs/cnn\n");
}

TEST_CASE("a full disk is told once for each file, never stops the training, and what is missing is counted", "[run]") {
  const TemporaryFolder folder;
  std::vector<std::string> said;
  Records records("/dev/full", folder / "log.txt", "/nonexistent/summary.json", "1",
                  [&](const std::string& text) { said.push_back(text); });
  for (int i = 0; i < 3; ++i) records.on(event_of(logged()));
  const std::string full =
      "'/dev/full' cannot be written: No space left on device; its lines are kept in memory and "
      "tried again";
  CHECK(said == std::vector<std::string>{full});
  CHECK(records.missing() == std::vector<std::string>{"'/dev/full' lacks 3 lines: No space left on device"});
  records.on(ended());
  CHECK(said.size() == 2);
  CHECK(said.back() == "'/nonexistent/summary.json' cannot be written: No such file or directory");
  CHECK(records.missing().size() == 2);
  CHECK(records.missing().back() == said.back());
}

TEST_CASE("numbers are shown with five significant digits", "[run]") {
  CHECK(compact(0) == "0.0000");
  CHECK(compact(1) == "1.0000");
  CHECK(compact(0.9999951) == "1.0000");
  CHECK(compact(0.0123456) == "0.012346");
  CHECK(compact(0.43214) == "0.43214");
  CHECK(compact(9.99996) == "10.000");
  CHECK(compact(12.3456) == "12.346");
  CHECK(compact(123.456) == "123.46");
  CHECK(compact(9999.96) == "10000");
  CHECK(compact(123456) == "1.2346e+05");
  CHECK(compact(0.001) == "0.0010000");
  CHECK(compact(4.321e-5) == "4.3210e-05");
  CHECK(compact(std::nan("")) == "nan");
  CHECK(compact(-std::numeric_limits<double>::infinity()) == "-inf");
  CHECK(duration(0.84) == "0.8 s");
  CHECK(duration(59.96) == "1:00");
  CHECK(duration(3723) == "1:02:03");
  CHECK(clock_time(42) == "0:42");
  CHECK(clock_time(-1) == "?");
}

TEST_CASE("a file where nobody may write says whose folder to take", "[run]") {
  const std::string refused = test::refusal([] { write_whole("/sys/pmaptrain", "text"); }, ExitStatus::failed);
  CHECK(refused.starts_with("'/sys/pmaptrain' cannot be written: "));
  CHECK(refused.ends_with(" | write to a folder that is yours"));
}

namespace {

// What an ensemble's run tells: one epoch of two steps, an evaluation, and its end.
std::string log_of(std::int64_t members) {
  const auto by_member = [&]<class E>(E event, auto change) {
    std::vector<E> events;
    for (std::int64_t m = 0; m < members; ++m) {
      event.member = m;
      event.measures = {{"loss", 0.5 + 0.01 * static_cast<double>((m * 5 + 3) % members)}, {"accuracy", 0.5}};
      change(event, m);
      events.push_back(event);
    }
    return Event(std::move(events));
  };
  const auto nothing = [](const auto&, std::int64_t) {};
  const TemporaryFolder folder;
  {
    Records records(folder / "metrics.jsonl", folder / "log.txt", folder / "summary.json", "1", nullptr);
    Started begin = started();
    begin.members = members;
    records.on(begin);
    records.on(by_member(logged(), [](Logged& event, std::int64_t m) {
      event.learning_rate = m == 0 ? 0.1 : 0.001;
      if (m == 1) event.measures[0].second = std::nan("");
    }));
    records.on(by_member(EpochEnded{4, 1, {}, 512, 2.0}, nothing));
    Event evaluated = by_member(Evaluated{4, 1, "test", {}, 1000, 2.5}, nothing);
    std::get<std::vector<Evaluated>>(evaluated).pop_back();  // one member has ended
    records.on(evaluated);
    Ended end = ended();
    end.is_ensemble = true;
    end.members.clear();
    for (std::int64_t m = 0; m < members; ++m) {
      const double loss = 0.25 + 0.01 * static_cast<double>(m);
      end.members.push_back({{{"train", {{"loss", loss}}}, {"test", {{"loss", 2 * loss}, {"accuracy", 0.9 - loss}}}},
                             Best{10 + m, "accuracy", 0.95 - loss},
                             20,
                             0,
                             "",
                             {}});
    }
    end.members[2].reason = "nonfinite";
    end.members[2].steps = 12;
    end.members[3].reason = "early_stopping";
    end.members[3].steps = 1600;
    end.members[3].best.reset();
    records.on(end);
  }
  CHECK(std::ranges::count(read_text(folder / "metrics.jsonl"), '\n') == 3 * members - 1);
  return read_text(folder / "log.txt");
}

}  // namespace

TEST_CASE("the log of eight members has one line for all of them, and a row for each at the end", "[run]") {
  test::check_golden("log_of_8_members.txt", log_of(8));
}

TEST_CASE("the log of 64 members is as long, and ends with the best, the median and the worst", "[run]") {
  test::check_golden("log_of_64_members.txt", log_of(64));
}

TEST_CASE("the measures of an ensemble are lists by member in the summary, and read back", "[run]") {
  Ended event = ended();
  event.is_ensemble = true;
  event.members.push_back(event.members.front());
  event.members[1].final_measures[0].second[0].second = std::nan("");
  event.members[1].best = Best{16, "accuracy", 0.91};
  event.members[1].steps = 12;
  event.members[1].steps_skipped = 3;
  event.members[1].reason = "early_stopping";
  const std::string text = summary_json(event, "1");
  const auto json = nlohmann::json::parse(text);
  CHECK(json["final"].size() == 2);
  CHECK(json["final"][0]["train"]["loss"] == 0.25);
  CHECK(json["final"][1]["train"]["loss"].is_null());
  CHECK(json["finite"] == false);
  CHECK(json["best"][0].is_null());
  CHECK(json["best"][1]["step"] == 16);
  CHECK(json["steps_skipped"] == 3);
  CHECK(json["members"][0] == nlohmann::json::parse(R"({"steps": 20, "steps_skipped": 0, "finished": null})"));
  CHECK(json["members"][1] ==
        nlohmann::json::parse(R"({"steps": 12, "steps_skipped": 3, "finished": "early_stopping"})"));
  const auto found = parse_summary(text);
  REQUIRE(found);
  CHECK(summary_json(*found, "1") == text);
}

TEST_CASE("a line of metrics.jsonl names the member of an ensemble", "[run]") {
  Logged event = logged();
  event.member = 3;
  CHECK(line_of(event_of(event)) ==
        R"({"event":"step","step":2,"epoch":1,"member":3,"loss":0.1,"accuracy":0.5,"learning_rate":0.001,)"
        R"("grad_norm":1.25,"examples_per_second":12345.4,"seconds":2.5})");
}

TEST_CASE("records of event files have the bytes that protocol buffers and TensorBoard's checksum give them", "[run]") {
  const auto hex = [](const std::string& bytes) {
    std::string text;
    for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
    return text;
  };
  CHECK(hex(version_record(1.5)) == "1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c");
  CHECK(hex(restart_record(1.5, 8)) == "0f000000000000006d532b0909000000000000f83f10083a0208019571c7d1");
  const std::string scalars = scalars_record(
      1.5, 300, std::vector<Scalar>{{"train/loss", 0.25}, {"lr", std::numeric_limits<double>::infinity()}});
  CHECK(hex(scalars) ==
        "2c00000000000000f4aecc4509000000000000f83f10ac022a1e0a110a0a747261696e2f6c6f7373150000803e0a090a026c7215"
        "0000807fc8290d66");
  CHECK(record_bytes(scalars + restart_record(1.5, 8)) == scalars.size());
}
