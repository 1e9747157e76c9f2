// When a run has event files for TensorBoard. scripts/check_tensorboard.py reads what is in them.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
using pmaptrain::test::contains;
namespace fs = std::filesystem;

namespace {

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

Finished run_in(const TemporaryFolder& folder, std::vector<std::string> more) {
  std::vector<std::string> arguments{"run", "tests/app/tensorboard.yaml", "--run-dir", folder / "run", "--progress",
                                     "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished finished = call(arguments);
  INFO(finished.err);
  CHECK(finished.status == 0);
  return finished;
}

}  // namespace

TEST_CASE("a resumed run goes on in a new event file, and the older ones stay as they are", "[app]") {
  const TemporaryFolder folder;
  run_in(folder, {"--max-steps", "5"});
  const std::vector<fs::path> before = files_in(folder / "run/tensorboard");
  REQUIRE(before.size() == 1);
  CHECK(contains(before.front().filename().string(), "tfevents"));
  const std::string bytes = read_text(before.front());
  run_in(folder, {"--resume"});
  const std::vector<fs::path> files = files_in(folder / "run/tensorboard");
  REQUIRE(files.size() == 2);
  CHECK(files.front() == before.front());
  CHECK(read_text(files.front()) == bytes);
}

TEST_CASE("--overwrite clears event files, and leaves what else is there", "[app]") {
  const TemporaryFolder folder;
  run_in(folder, {});
  fs::create_directory(folder / "run/tensorboard/member-7");
  pmaptrain::test::write_text(folder / "run/tensorboard/notes.txt", "mine");
  const fs::path before = files_in(folder / "run/tensorboard").front();
  run_in(folder, {"--overwrite", "--set", "train.tensorboard=false"});
  CHECK(files_in(folder / "run/tensorboard") == std::vector<fs::path>{folder / "run/tensorboard/notes.txt"});
  CHECK(!fs::exists(folder / "run/tensorboard/member-7"));
  fs::remove(folder / "run/tensorboard/notes.txt");
  run_in(folder, {"--overwrite", "--set", "train.tensorboard=false"});
  CHECK(!fs::exists(folder / "run/tensorboard"));
}

TEST_CASE("train.tensorboard may change when a run is resumed", "[app]") {
  const TemporaryFolder folder;
  run_in(folder, {"--max-steps", "4", "--set", "train.tensorboard=false"});
  CHECK(!fs::exists(folder / "run/tensorboard"));
  run_in(folder, {"--resume", "--max-steps", "8"});
  CHECK(files_in(folder / "run/tensorboard").size() == 1);
  run_in(folder, {"--resume", "--set", "train.tensorboard=false"});
  CHECK(files_in(folder / "run/tensorboard").size() == 1);
}

TEST_CASE("each member of an ensemble has event files of its own", "[app]") {
  const TemporaryFolder folder;
  run_in(folder, {"--max-steps", "4", "--set", "mesh.axes=[{trials: 3}, {devices: 4}]", "--set",
                  "ensemble={axis: trials, vary: {seed: [0, 1, 2]}}"});
  CHECK(files_in(folder / "run/tensorboard").empty());
  for (const char* const member : {"member-0", "member-1", "member-2"}) {
    CHECK(files_in(fs::path(folder / "run/tensorboard") / member).size() == 1);
  }
}

TEST_CASE("a run whose event files cannot be written goes on, and says what is missing", "[app]") {
  const TemporaryFolder folder;
  run_in(folder, {"--max-steps", "4", "--set", "train.tensorboard=false"});
  pmaptrain::test::write_text(folder / "run/tensorboard", "a file");
  const Finished finished = call({"run", "tests/app/tensorboard.yaml", "--run-dir", folder / "run", "--resume"});
  CHECK(finished.status == 1);
  CHECK(contains(finished.err, "/run/tensorboard' cannot be made: Not a directory"));
  CHECK(contains(read_text(folder / "run/log.txt"), "the run goes on without event files for TensorBoard"));
  CHECK(json::parse(read_text(folder / "run/summary.json"))["steps"] == 12);
}
