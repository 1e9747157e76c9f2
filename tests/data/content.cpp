// What identifies files and folders of data.
#include "core/input/content.h"

#include <filesystem>
#include <fstream>

#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/files.h"

using namespace pmaptrain;
using test::TemporaryFolder;
namespace fs = std::filesystem;

TEST_CASE("data is identified by its bytes, not by its path or time", "[data]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a.csv", "x,y\n1,2\n"), b = folder.write("b.csv", "x,y\n1,2\n");
  fs::last_write_time(b, fs::file_time_type::clock::now() - std::chrono::hours(24));
  CHECK(input::is_same(input::content_of(a), input::content_of(b)));
  const std::string changed = folder.write("c.csv", "x,y\n1,3\n");
  CHECK_FALSE(input::is_same(input::content_of(a), input::content_of(changed)));
  CHECK(input::content_of(a).hash == input::content_of(a).whole);
  CHECK(input::content_of(a).bytes == 8);
}

TEST_CASE("of 64 MiB and more a sample is hashed, and all bytes where they are asked for", "[data]") {
  const TemporaryFolder folder;
  const std::string path = folder / "large";
  constexpr std::int64_t bytes = std::int64_t{65} << 20;
  std::ofstream(path).put('x');
  fs::resize_file(path, static_cast<std::uintmax_t>(bytes));
  const input::Content sampled = input::content_of(path), whole = input::content_of(path, true);
  CHECK(sampled.whole.empty());
  CHECK_FALSE(whole.whole.empty());
  CHECK(sampled.hash == whole.hash);
  const auto change = [&](std::int64_t at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.put('y');
  };
  // The first and the last MiB are in the sample, and one block of 4 KiB of each of 4,096 equal parts between them.
  for (const std::int64_t at : {std::int64_t{1} << 19, bytes - (std::int64_t{1} << 19)}) {
    const input::Content before = input::content_of(path);
    change(at);
    CHECK(input::content_of(path).hash != before.hash);
  }
  const input::Content before = input::content_of(path, true);
  int missed = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    // Blocks of one part, of which one is in the sample.
    change((std::int64_t{32} << 20) + i * 4096);
    const input::Content now = input::content_of(path, true);
    if (now.hash == before.hash) {
      ++missed;
      CHECK_FALSE(input::is_same(now, before));
      CHECK_FALSE(input::difference({before}, {now}).empty());
    } else {
      break;
    }
  }
  CHECK(missed < 4);
}

TEST_CASE("a folder is identified by the names, sizes and bytes of its files, without runs and hidden ones", "[data]") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name) {
    fs::create_directories(folder.path() / name / "cat");
    folder.write(name + "/cat/1.png", "one");
    folder.write(name + "/cat/2.png", "two");
  };
  make("a");
  make("b");
  const input::Content a = input::content_of(folder / "a");
  const auto of_b = [&] { return input::content_of(folder / "b"); };
  CHECK(input::is_same(a, of_b()));
  CHECK(a.files == 2);
  folder.write("b/.DS_Store", "of a desktop");
  fs::create_directories(folder.path() / "b/runs/x");
  folder.write("b/runs/x/.pmaptrain", "");
  folder.write("b/runs/x/metrics.jsonl", "{}");
  CHECK(input::is_same(a, of_b()));
  fs::rename(folder / "b/cat/2.png", folder / "b/cat/3.png");
  CHECK_FALSE(input::is_same(a, of_b()));
  fs::rename(folder / "b/cat/3.png", folder / "b/cat/2.png");
  folder.write("b/cat/2.png", "owt");
  CHECK_FALSE(input::is_same(a, of_b()));
}

TEST_CASE("what differs is said with both sizes and hashes", "[data]") {
  const input::Content before{"data.source.npz.file", "/old/d.npz", 1234, {}, "0123", ""};
  input::Content now = before;
  now.path = "/new/d.npz";
  CHECK(input::difference({before}, {now}).empty());
  now.hash = "4567", now.bytes = 1230;
  CHECK(input::difference({before}, {now}) ==
        "'/new/d.npz' (data.source.npz.file) has 1,230 bytes with hash 4567; the run began with 1,234 bytes with hash "
        "0123 in '/old/d.npz'");
  CHECK(input::difference({}, {now}).empty());  // a run of an earlier version
}
