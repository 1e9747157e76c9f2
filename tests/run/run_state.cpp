// The document state.json.
#include "core/run/run_state.h"

#include <cmath>
#include <limits>
#include <span>

#include "core/base/error.h"
#include "core/run/files/file_writer.h"
#include "tests/catch.h"

using namespace pmaptrain;
using run::RunState;

namespace {

RunState state_with_everything() {
  RunState state;
  state.step = 17;
  state.members[0].steps = 17;
  state.members[0].steps_skipped = 2;
  state.members[0].updates = 15;
  state.example_cursor = 272;
  state.schedule_steps = 40;
  state.changes = {{9, "optimizer.learning_rate", "{linear: {init_value: 0.1, transition: 40 steps}}"},
                   {9, "optimizer.adam.b1", "0.8"}};
  state.members[0].schedule_began = 7;
  state.seconds = 0.1;
  state.epoch_seconds = 0.05;
  state.metrics_bytes = 4096;
  state.members[0].logged_step = 15;
  state.members[0].measures = {{"train", {{"loss", 1.0 / 3.0}, {"accuracy", std::numeric_limits<double>::quiet_NaN()}}},
                               {"test", {{"loss", std::numeric_limits<double>::infinity()}}}};
  state.members[0].evaluated_step = 10;
  state.members[0].last_step = run::Logged{17, 2, {{"loss", 0.25}}, 1e-3, 2.5, 0, 0};
  state.members[0].last_epoch = run::EpochEnded{16, 2, {{"loss", 0.5}}, 100, 0};
  state.evaluation_is_due = true;
  state.members[0].best = run::Best{10, "accuracy", 0.75};
  state.members[0].early_stopping = {"loss", "min", 0.5, 3};
  state.members[0].plateau = {"loss", {0.5, 1, 2, 0.1}};
  state.members[0].loss_sums = run::LossSums{{{5, 10, 0.7}, {10, 15, 0.6}}, 15, 1.5, 2.0, 3.5, 4.0};
  state.members[0].finished = "early_stopping";
  state.members[0].finished_why = "no 'improvement' in \"five\" evaluations";
  state.members[0].seed = std::numeric_limits<std::uint64_t>::max();
  state.members[0].data_seed = 3;
  state.encoding.columns = {{"a \"b\", [c]", {}, 0.1}, {"null", {"x\ny", "\xc3\xa9", "{"}, 0}};
  state.encoding.classes = {"", "no", "[[[["};
  state.encoding.image = {32, 28, 3};
  state.encoding.statistics = {{{0.1, 1e-300}, {1.0 / 3.0, 2}}};
  state.encoding.targets = {{{2e5}, {1.0 / 7.0}}};
  state.encoding.class_weights = {0.1, 3};
  state.encoding.skipped = {{"train", 1, "'t.csv', line 3, column 'x': 'Paris' is no number"},
                            {"test", 7, "'photos/a/7.png' is empty", "a/7.png"}};
  state.batch_size = 16;
  state.train_examples = 70;
  state.config_hash = "0123456789abcdef";
  state.checksums = {{"params.safetensors", "xxh3:0"}, {"optimizer.safetensors", "xxh3:1"}};
  return state;
}

bool is_refused(const std::string& text) {
  try {
    run::parse_run_state(text, "run/state.json");
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::data);
    CHECK(error.diagnostics().front().message == "'run/state.json' is damaged: it is not what was written");
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("state.json reads back as what was written, numbers that are not finite too", "[run]") {
  for (const RunState& state : {RunState{}, state_with_everything()}) {
    const std::string text = run::to_json(state);
    const RunState found = run::parse_run_state(text, "state.json");
    CHECK(run::to_json(found) == text);
    CHECK(found.step == state.step);
    CHECK(found.changes == state.changes);
    CHECK(found.members[0].schedule_began == state.members[0].schedule_began);
    CHECK(found.encoding == state.encoding);
    CHECK(found.members[0].seed == state.members[0].seed);
    CHECK(found.evaluation_is_due == state.evaluation_is_due);
    CHECK(found.members[0].best.has_value() == state.members[0].best.has_value());
    CHECK(found.members[0].loss_sums.has_value() == state.members[0].loss_sums.has_value());
    if (found.members[0].loss_sums) CHECK(found.members[0].loss_sums->means == state.members[0].loss_sums->means);
    CHECK(found.members[0].plateau.state == state.members[0].plateau.state);
  }
  const RunState found = run::parse_run_state(run::to_json(state_with_everything()), "state.json");
  CHECK(found.members[0].measures.at("train")[0].second == 1.0 / 3.0);
  CHECK(std::isnan(found.members[0].measures.at("train")[1].second));
  CHECK(std::isinf(found.members[0].measures.at("test")[0].second));
  CHECK(found.members[0].last_step->grad_norm == 2.5);
  CHECK(found.members[0].last_epoch->examples == 100);
}

TEST_CASE("a state that no run can have left is refused, though its checksum is right", "[run]") {
  const auto with = [](auto change) {
    RunState state = state_with_everything();
    change(state);
    return run::to_json(state);
  };
  CHECK(is_refused(with([](RunState& s) { s.step = -5; })));
  CHECK(is_refused(with([](RunState& s) { s.step = std::numeric_limits<std::int64_t>::max(); })));
  CHECK(is_refused(with([](RunState& s) { s.members[0].updates = 18; })));
  CHECK(is_refused(with([](RunState& s) { s.members[0].steps_skipped = -1; })));
  CHECK(is_refused(with([](RunState& s) { s.seconds = std::numeric_limits<double>::quiet_NaN(); })));
  CHECK(is_refused(with([](RunState& s) { s.changes[1].step = 18; })));
  CHECK(is_refused(with([](RunState& s) { s.members[0].schedule_began = -1; })));
  CHECK(is_refused(with([](RunState& s) { s.encoding.image = {32}; })));
  CHECK(is_refused(with([](RunState& s) { s.encoding.image = {32, -1, 3}; })));
  CHECK(is_refused(with([](RunState& s) { s.encoding.statistics->std.pop_back(); })));
  CHECK(is_refused(with([](RunState& s) { s.encoding.targets->mean.pop_back(); })));
  CHECK(is_refused("{\"a\": " + std::string(200'000, '[')));
}

TEST_CASE("a state without an encoding, from before there was one, has an empty one", "[run]") {
  std::string text = run::to_json(state_with_everything());
  const std::size_t encoding = text.find("  \"encoding\": {"), next = text.find("  \"input\"");
  REQUIRE(encoding < next);
  text.erase(encoding, next - encoding);
  text.erase(text.find(",\n  \"checksum\""));
  const std::string whole = text + "\n}\n", hash = run::hash_hex(std::as_bytes(std::span(whole)));
  const RunState found = run::parse_run_state(text + ",\n  \"checksum\": \"xxh3:" + hash + "\"\n}\n", "state.json");
  CHECK(found.encoding == data::Encoding{});
  CHECK(found.step == 17);
}

TEST_CASE("a state from before targets were normalised and classes balanced says nothing of either", "[run]") {
  RunState state;
  state.encoding.classes = {"a"};
  std::string text = run::to_json(state);
  for (const std::string part :
       {",\n    \"targets\": null", ",\n    \"class_weights\": []", ",\n    \"skipped\": []"}) {
    REQUIRE(text.find(part) != std::string::npos);
    text.erase(text.find(part), part.size());
  }
  text.erase(text.find(",\n  \"checksum\""));
  const std::string whole = text + "\n}\n", hash = run::hash_hex(std::as_bytes(std::span(whole)));
  const RunState found = run::parse_run_state(text + ",\n  \"checksum\": \"xxh3:" + hash + "\"\n}\n", "state.json");
  CHECK(found.encoding == state.encoding);
}

TEST_CASE("a state from before there were changes has none", "[run]") {
  std::string text = run::to_json(RunState{});
  for (const std::string part : {"\n  \"schedule_began\": null,", "\n  \"changes\": [],"}) {
    REQUIRE(text.find(part) != std::string::npos);
    text.erase(text.find(part), part.size());
  }
  text.erase(text.find(",\n  \"checksum\""));
  const std::string whole = text + "\n}\n", hash = run::hash_hex(std::as_bytes(std::span(whole)));
  const RunState found = run::parse_run_state(text + ",\n  \"checksum\": \"xxh3:" + hash + "\"\n}\n", "state.json");
  CHECK(found.changes.empty());
  CHECK_FALSE(found.members[0].schedule_began);
}

TEST_CASE("a state of many columns is read in one pass", "[run]") {
  // Looking through the columns for each of them would take long.
  RunState state;
  for (int i = 0; i < 10'000; ++i) state.encoding.columns.push_back({std::to_string(i), {}, 0});
  CHECK(run::parse_run_state(run::to_json(state), "state.json").encoding == state.encoding);
}

TEST_CASE("each flipped bit and each truncation of state.json is found", "[run]") {
  const std::string text = run::to_json(state_with_everything());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << i % 7));
    INFO(damaged);
    CHECK(is_refused(damaged));
    CHECK(is_refused(text.substr(0, i)));
  }
  CHECK(is_refused(text + "\n"));
  CHECK_FALSE(is_refused(text));
}
