// TensorBoard's event files, read by a strict reader of their own: every checksum, every field of every record.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string_view>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
using pmaptrain::test::contains;
namespace fs = std::filesystem;

namespace {

struct Read {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string version;
  bool restarts = false;
  std::vector<std::pair<std::string, float>> scalars;
};

// As the standard defines it, bit by bit.
std::uint32_t masked_checksum(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

template <class T>
T take(std::string_view& bytes) {
  REQUIRE(bytes.size() >= sizeof(T));
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = take<unsigned char>(bytes);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  FAIL("a varint does not end");
  return 0;
}

std::string_view take_bytes(std::string_view& bytes) {
  const std::uint64_t size = take_varint(bytes);
  REQUIRE(size <= bytes.size());
  const std::string_view taken = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return taken;
}

constexpr std::uint64_t key(int field, int wire) { return static_cast<std::uint64_t>(field << 3 | wire); }

std::pair<std::string, float> scalar_of(std::string_view value) {
  REQUIRE(take_varint(value) == key(1, 2));
  const std::string tag(take_bytes(value));
  REQUIRE(take_varint(value) == key(2, 5));
  const auto number = take<float>(value);
  REQUIRE(value.empty());
  return {tag, number};
}

Read event_of(std::string_view event) {
  Read read;
  REQUIRE(take_varint(event) == key(1, 1));
  read.wall_time = take<double>(event);
  REQUIRE(take_varint(event) == key(2, 0));
  read.step = static_cast<std::int64_t>(take_varint(event));
  const std::uint64_t what = take_varint(event);
  std::string_view rest = take_bytes(event);
  REQUIRE(event.empty());
  if (what == key(3, 2)) {
    read.version = rest;
  } else if (what == key(7, 2)) {
    REQUIRE(take_varint(rest) == key(1, 0));
    REQUIRE(take_varint(rest) == 1);
    REQUIRE(rest.empty());
    read.restarts = true;
  } else {
    REQUIRE(what == key(5, 2));
    while (!rest.empty()) {
      REQUIRE(take_varint(rest) == key(1, 2));
      read.scalars.push_back(scalar_of(take_bytes(rest)));
    }
  }
  return read;
}

std::vector<Read> events_in(const fs::path& file) {
  const std::string text = read_text(file);
  std::string_view bytes = text;
  std::vector<Read> events;
  while (!bytes.empty()) {
    const std::string_view length = bytes.substr(0, 8);
    const auto size = take<std::uint64_t>(bytes);
    REQUIRE(take<std::uint32_t>(bytes) == masked_checksum(length));
    REQUIRE(size <= bytes.size());
    const std::string_view event = bytes.substr(0, size);
    bytes.remove_prefix(size);
    REQUIRE(take<std::uint32_t>(bytes) == masked_checksum(event));
    events.push_back(event_of(event));
  }
  REQUIRE(!events.empty());
  CHECK(events.front().version == "brain.Event:2");
  return events;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// Of all files of a folder: values by tag and step. No step may be there twice.
using Series = std::map<std::string, std::map<std::int64_t, float>>;
Series series_in(const fs::path& folder) {
  Series series;
  for (const fs::path& file : files_in(folder)) {
    for (const Read& event : events_in(file)) {
      for (const auto& [tag, value] : event.scalars) {
        INFO(tag << " at step " << event.step << " in " << file);
        CHECK(series[tag].emplace(event.step, value).second);
      }
    }
  }
  return series;
}

// What metrics.jsonl says, under TensorBoard's tags.
Series expected_of(const fs::path& run, int member = -1) {
  Series series;
  std::istringstream lines(read_text(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const json object = json::parse(line);
    if (member >= 0 && object["member"] != member) continue;
    const std::string event = object["event"];
    const std::int64_t step = object["step"];
    for (const auto& [name, value] : object.items()) {
      const std::set<std::string> others{"event", "step", "epoch", "member", "seconds", "examples", "split"};
      if (others.contains(name)) continue;
      const bool own = name == "learning_rate" || name == "grad_norm" || name == "examples_per_second";
      const std::string tag = own                ? name
                              : event == "step"  ? "train/" + name
                              : event == "epoch" ? "train/epoch_" + name
                                                 : object["split"].get<std::string>() + "/" + name;
      series[tag][step] = static_cast<float>(value.get<double>());
    }
  }
  return series;
}

// A small classifier: four epochs of three steps.
const std::string images = R"(name: images
mesh: {axes: {devices: 4}}
data:
  source: {synthetic_images: {height: 6, width: 6, channels: 1, classes: 3, train: 60, test: 21, noise: 0.1}}
  batch_size: 16
  validation: 0.2
model: {layers: [flatten, {dense: 3}]}
loss: softmax_cross_entropy
metrics: [accuracy]
optimizer: {adam: {}, learning_rate: 0.01}
train: {duration: 4 epochs, log_every: 2 steps}
)";

Finished run(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments{
      "run", folder.write("images.yaml", images), "--run-dir", folder / "run", "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = call(arguments);
  INFO(finished.err);
  CHECK(finished.status == 0);
  return finished;
}

int occurrences_of(const std::string& text, const std::string& words) {
  int count = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("event files have what metrics.jsonl has, under the usual tags", "[app]") {
  const TemporaryFolder folder;
  run(folder, {});
  const Series series = series_in(folder / "run/tensorboard");
  CHECK(series == expected_of(folder / "run"));
  std::vector<std::string> tags;
  for (const auto& [tag, values] : series) tags.push_back(tag);
  CHECK(tags == std::vector<std::string>{"examples_per_second", "grad_norm", "learning_rate", "test/accuracy",
                                         "test/loss", "train/accuracy", "train/epoch_accuracy", "train/epoch_loss",
                                         "train/loss", "validation/accuracy", "validation/loss"});
  const std::vector<fs::path> files = files_in(folder / "run/tensorboard");
  REQUIRE(files.size() == 1);
  CHECK(contains(files.front().filename().string(), "tfevents"));
  const std::vector<Read> events = events_in(files.front());
  for (std::size_t i = 1; i < events.size(); ++i) CHECK(events[i].wall_time >= events[i - 1].wall_time);
  CHECK(events.front().wall_time > 1.6e9);
}

TEST_CASE("a resumed run goes on in a new event file, and no step is there twice", "[app]") {
  const TemporaryFolder folder;
  run(folder, {"--max-steps", "5"});
  run(folder, {"--max-steps", "7", "--resume"});
  // As of a process that was killed after its last checkpoint: what comes after that is taken again.
  fs::remove_all(folder / "run/checkpoints/step-00000007");
  fs::remove(folder / "run/checkpoints/last");
  run(folder, {"--resume"});
  Series series = series_in(folder / "run/tensorboard");
  Series expected = expected_of(folder / "run");
  // The step at which the run stopped stays here.
  for (auto& [tag, values] : expected) {
    for (const auto& [step, value] : values) {
      INFO(tag << " at step " << step);
      CHECK((tag == "examples_per_second" || series[tag].at(step) == value));
      series[tag].erase(step);
    }
  }
  for (const auto& [tag, values] : series) {
    for (const auto& [step, value] : values) CHECK(step == 5);
  }
  const std::vector<fs::path> files = files_in(folder / "run/tensorboard");
  REQUIRE(files.size() == 3);
  CHECK(events_in(files[0]).back().step == 5);
  CHECK(events_in(files[1]).size() == 1);  // all of it came after the checkpoint
  CHECK(events_in(files[2]).at(1).restarts);
  CHECK(events_in(files[2]).at(1).step == 6);
}

TEST_CASE("event files that are damaged are cut where the damage begins, with a warning", "[app]") {
  const TemporaryFolder folder;
  run(folder, {"--max-steps", "5"});
  const fs::path file = files_in(folder / "run/tensorboard").front();
  const std::size_t records = events_in(file).size();
  std::ofstream(file, std::ios::app | std::ios::binary) << "half a record";
  run(folder, {"--max-steps", "6", "--resume"});
  CHECK(contains(read_text(folder / "run/log.txt"), "' is damaged: its last 13 bytes were cut off"));
  CHECK(events_in(file).size() == records);
  std::string bytes = read_text(file);
  bytes[bytes.size() / 2] = static_cast<char>(~bytes[bytes.size() / 2]);
  pmaptrain::test::write_text(file, bytes);
  run(folder, {"--resume"});
  CHECK(occurrences_of(read_text(folder / "run/log.txt"), "' is damaged: its last ") == 2);
  CHECK(events_in(file).size() < records);
}

TEST_CASE("--overwrite clears event files, and leaves what else is there", "[app]") {
  const TemporaryFolder folder;
  run(folder, {});
  fs::create_directory(folder / "run/tensorboard/member-7");
  pmaptrain::test::write_text(folder / "run/tensorboard/notes.txt", "mine");
  const fs::path before = files_in(folder / "run/tensorboard").front();
  run(folder, {"--overwrite", "--set", "train.tensorboard=false"});
  CHECK(files_in(folder / "run/tensorboard") == std::vector<fs::path>{folder / "run/tensorboard/notes.txt"});
  CHECK(!fs::exists(folder / "run/tensorboard/member-7"));
  fs::remove(folder / "run/tensorboard/notes.txt");
  run(folder, {"--overwrite", "--set", "train.tensorboard=false"});
  CHECK(!fs::exists(folder / "run/tensorboard"));
}

TEST_CASE("train.tensorboard may change when a run is resumed", "[app]") {
  const TemporaryFolder folder;
  run(folder, {"--max-steps", "4", "--set", "train.tensorboard=false"});
  CHECK(!fs::exists(folder / "run/tensorboard"));
  run(folder, {"--resume", "--max-steps", "8"});
  CHECK(series_in(folder / "run/tensorboard").at("train/loss").begin()->first == 6);
  fs::remove_all(folder / "run/checkpoints/step-00000008");
  run(folder, {"--resume", "--set", "train.tensorboard=false"});
  CHECK(series_in(folder / "run/tensorboard").empty());  // the other process's steps were taken again
}

TEST_CASE("each member of an ensemble has event files of its own", "[app]") {
  const TemporaryFolder folder;
  for (const int members : {3, 17}) {  // of many members the files are not held open
    std::string seeds;
    for (int m = 0; m < members; ++m) seeds += (m > 0 ? ", " : "") + std::to_string(m);
    run(folder, {"--overwrite", "--max-steps", "4", "--set",
                 "mesh.axes=[{trials: " + std::to_string(members) + "}, {devices: 4}]", "--set",
                 "ensemble={axis: trials, vary: {seed: [" + seeds + "]}}"});
    CHECK(files_in(folder / "run/tensorboard").empty());
    std::set<float> losses;
    for (int m = 0; m < members; ++m) {
      Series expected = expected_of(folder / "run", m);
      const Series series = series_in(fs::path(folder / "run/tensorboard") / ("member-" + std::to_string(m)));
      CHECK(series.at("train/loss") == expected.at("train/loss"));
      CHECK(series.at("validation/loss") == expected.at("validation/loss"));
      losses.insert(series.at("train/loss").at(4));
    }
    CHECK(std::ssize(losses) == members);
  }
}

TEST_CASE("a run whose event files cannot be written goes on, and says what is missing", "[app]") {
  const TemporaryFolder folder;
  run(folder, {"--max-steps", "4", "--set", "train.tensorboard=false"});
  pmaptrain::test::write_text(folder / "run/tensorboard", "a file");
  const Finished finished = call({"run", folder / "images.yaml", "--run-dir", folder / "run", "--resume"});
  CHECK(finished.status == 1);
  CHECK(contains(finished.err, "/run/tensorboard' cannot be made: Not a directory"));
  CHECK(contains(read_text(folder / "run/log.txt"), "the run goes on without event files for TensorBoard"));
  CHECK(json::parse(read_text(folder / "run/summary.json"))["steps"] == 12);
}
