// The seam between a run and the file system: no call goes past it, and what is recorded at it is what happens.
#include "core/run/files/file_system.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/run/disk.h"
#include "tests/train/long_run.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
namespace fs = std::filesystem;

TEST_CASE("no source of a run changes a file but by the calls of file_system.cpp", "[run]") {
  const std::vector<std::string> calls = {
      "open",      "openat", "creat",   "write",     "pwrite",   "writev",    "ftruncate", "truncate",  "fsync",
      "fdatasync", "close",  "flock",   "rename",    "renameat", "renameat2", "mkdir",     "mkdirat",   "rmdir",
      "link",      "linkat", "symlink", "symlinkat", "unlink",   "unlinkat",  "fopen",     "fallocate", "mkstemp"};
  std::vector<std::string> past = {
      "ofstream",    "fstream>", "std::remove(",    "fs::remove",          "fs::rename",
      "fs::create_", "fs::copy", "fs::resize_file", "filesystem::create_", "filesystem::remove"};
  // Not those of a class or namespace of ours, such as input::open().
  for (const std::string& call : calls) {
    for (const char before : std::string(" (!=")) past.push_back(before + ("::" + call + "("));
  }
  int sources = 0;
  for (const char* const folder : {"core/run", "core/setup", "core/evaluate", "core/exports", "core/train"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (!entry.is_regular_file() || name == "file_system.cpp") continue;
      ++sources;
      const std::string text = test::read_text(entry.path());
      for (const std::string& words : past) {
        INFO(name << " has '" << words << "'");
        CHECK(!test::contains(text, words));
      }
    }
  }
  CHECK(sources > 50);
}

TEST_CASE("the recorded changes of a run give what is on the disk after each of them", "[run]") {
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
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--max-steps", "9"}, {"--resume", "--max-steps", "16"}, {"--overwrite", "--max-steps", "1"}}) {
    Comparing recorder(place.path("recorded"));
    {
      const run::InstalledFileSystem installed(recorder);
      place.complete("recorded/run", more);
    }
    CHECK(recorder.different == 0);
    CHECK(recorder.changes().size() - recorder.first() > 50);
    // Somebody else's file keeps the folder of checkpoints when the run is replaced.
    test::write_text(place.path("recorded/run/checkpoints/notes.txt"), "somebody's own");
  }
}

TEST_CASE("directories are made with those above them, and an error says what is in the way", "[run]") {
  const test::TemporaryFolder folder;
  CHECK(run::make_directories(folder / "a/b/c") == 0);
  CHECK(fs::is_directory(folder / "a/b/c"));
  CHECK(run::make_directories(folder / "a/b/c") == 0);
  CHECK(run::make_directories(folder / "a/b/../d/") == 0);
  CHECK(fs::is_directory(folder / "a/d"));
  folder.write("a/file", "");
  CHECK(run::make_directories(folder / "a/file") == ENOTDIR);
  CHECK(run::make_directories(folder / "a/file/b") == ENOTDIR);
  FailingFileSystem full({Call::make_directory, 2, ENOSPC});
  const run::InstalledFileSystem installed(full);
  CHECK(run::make_directories(folder / "x/y") == ENOSPC);
}
