// The seam between a run and the file system: no call goes past it, and what is recorded at it is what happens.
#include "core/train/file_system.h"

#include <filesystem>
#include <regex>

#include "tests/catch.h"
#include "tests/train/disk.h"
#include "tests/train/long_run.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

TEST_CASE("no source of core/train changes a file but by the calls of file_system.cpp", "[train]") {
  const std::regex past(
      "::(open|openat|creat|write|pwrite|writev|pwritev|ftruncate|truncate|fsync|fdatasync|syncfs|close|flock|rename|"
      "renameat|renameat2|mkdir|mkdirat|rmdir|link|linkat|symlink|symlinkat|unlink|unlinkat|fopen|fallocate|"
      "posix_fallocate|copy_file_range|sendfile|mkostemp|mkstemp)\\(|"
      "ofstream|std::fstream|std::(remove|rename|fopen)\\(|"
      "\\b(fs|filesystem)::(create_|remove|rename|copy|resize_file|permissions|last_write_time)");
  for (const fs::directory_entry& entry : fs::directory_iterator("core/train")) {
    const std::string name = entry.path().filename().string();
    if (name == "file_system.cpp") continue;
    std::istringstream lines(test::read_text(entry.path()));
    int number = 0;
    for (std::string line; std::getline(lines, line);) {
      INFO(name << ":" << ++number << ": " << line);
      // A function of ours that is called so, such as data::open, has letters before the colons.
      std::smatch found;
      if (!std::regex_search(line, found, past)) continue;
      const bool ours =
          found.position() > 0 && found.str().starts_with("::") &&
          (std::isalnum(static_cast<unsigned char>(line[static_cast<std::size_t>(found.position()) - 1])) != 0);
      CHECK(ours);
    }
  }
}

TEST_CASE("the recorded changes of a run give what is on the disk after each of them", "[train]") {
  class Comparing : public RecordingFileSystem {
   public:
    explicit Comparing(const fs::path& directory) : RecordingFileSystem(directory), directory_(directory) {}
    int different = 0;

   private:
    void changed() override {
      for (; applied_ < changes().size(); ++applied_) replayed_.apply(changes()[applied_]);
      different += replayed_.tree() == tree_of(directory_) ? 0 : 1;
    }
    fs::path directory_;
    Disk replayed_;
    std::size_t applied_ = 0;
  };
  const LongRun place(45);
  fs::create_directory(place.path("recorded"));
  // Begun, continued, and replaced: with somebody else's file, the folder of checkpoints stays.
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--max-steps", "23"}, {"--resume"}, {"--overwrite"}}) {
    Comparing recorder(place.path("recorded"));
    {
      const train::InstalledFileSystem installed(recorder);
      place.complete("recorded/run", more);
    }
    CHECK(recorder.different == 0);
    CHECK(recorder.changes().size() - recorder.first() > 50);
    test::write_text(place.path("recorded/run/checkpoints/notes.txt"), "somebody's own");
  }
}

TEST_CASE("directories are made with those above them, and an error says what is in the way", "[train]") {
  const test::TemporaryFolder folder;
  CHECK(train::make_directories(folder / "a/b/c") == 0);
  CHECK(fs::is_directory(folder / "a/b/c"));
  CHECK(train::make_directories(folder / "a/b/c") == 0);
  CHECK(train::make_directories(folder / "a/b/../d/") == 0);
  CHECK(fs::is_directory(folder / "a/d"));
  folder.write("a/file", "");
  CHECK(train::make_directories(folder / "a/file") == ENOTDIR);
  CHECK(train::make_directories(folder / "a/file/b") == ENOTDIR);
  FailingFileSystem full({Call::make_directory, 2, ENOSPC});
  const train::InstalledFileSystem installed(full);
  CHECK(train::make_directories(folder / "x/y") == ENOSPC);
}
