// The files of the recorders where a disk is full, a file is gone, or what there is is no file.
#include "core/run/files/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.h"
#include "core/run/files/file_writer.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/run/file_size_limit.h"
#include "tests/words.h"

using namespace pmaptrain;
using namespace pmaptrain::run;

namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;

}  // namespace

TEST_CASE("what a disk has no room for waits and is written when there is room", "[run]") {
  const TemporaryFolder folder;
  int warnings = 0;
  AppendFile file(folder / "metrics.jsonl", [&](const std::string&) { ++warnings; });
  file.write("one\n");
  {
    const testing::FileSizeLimit limit(6);
    file.write("two\n");
    file.write("three\n");
    CHECK(read_text(folder / "metrics.jsonl") == "one\n");  // no half of a line
    CHECK(file.missing() == "'" + (folder / "metrics.jsonl") + "' lacks 2 lines: File too large");
  }
  file.write("four\n");
  CHECK(read_text(folder / "metrics.jsonl") == "one\ntwo\nthree\nfour\n");
  CHECK(file.missing().empty());
  {
    const testing::FileSizeLimit limit(6);
    file.write("five\n");
  }
  file.flush();
  CHECK(read_text(folder / "metrics.jsonl").ends_with("four\nfive\n"));
  CHECK(warnings == 1);
}

TEST_CASE("a file that cannot be opened for a moment gets its lines later", "[run]") {
  const TemporaryFolder folder;
  AppendFile file(folder / "later/metrics.jsonl", nullptr);
  file.write("one\n");
  CHECK(file.missing() == "'" + (folder / "later/metrics.jsonl") + "' lacks 1 line: No such file or directory");
  fs::create_directory(folder / "later");
  file.write("two\n");
  CHECK(read_text(folder / "later/metrics.jsonl") == "one\ntwo\n");
}

TEST_CASE("a file that somebody removes is missing at the end", "[run]") {
  const TemporaryFolder folder;
  AppendFile file(folder / "metrics.jsonl", nullptr);
  file.write("one\n");
  CHECK(file.missing().empty());
  fs::remove(folder / "metrics.jsonl");
  file.write("two\n");
  CHECK(file.missing() == "'" + (folder / "metrics.jsonl") + "' was removed while the run went on");
}

TEST_CASE("of more lines than memory is kept for, the oldest are given up and counted", "[run]") {
  const TemporaryFolder folder;
  AppendFile file(folder / "later/metrics.jsonl", nullptr);
  const std::string line = std::string(999, 'x') + "\n";
  const std::size_t kept = AppendFile::most_waiting / line.size();
  for (std::size_t i = 0; i < kept + 10; ++i) file.write(line);
  fs::create_directory(folder / "later");
  file.flush();
  CHECK(read_text(folder / "later/metrics.jsonl").size() == kept * line.size());
  CHECK(file.missing() == "'" + (folder / "later/metrics.jsonl") + "' lacks 10 lines: No such file or directory");
}

TEST_CASE("a file is written whole or stays as it was", "[run]") {
  const TemporaryFolder folder;
  write_whole(folder / "a", "first");
  write_whole(folder / "a", "second");
  CHECK(read_text(folder / "a") == "second");
  fs::create_directory(folder / "b");
  CHECK_THROWS_AS(write_whole(folder / "b", "text"), Error);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}

TEST_CASE("a line that only partly fits is taken back", "[run]") {
  const TemporaryFolder folder;
  const std::string line = "{\"event\":\"step\",\"step\":1}\n";
  int warnings = 0;
  std::string said;
  AppendFile file(folder / "metrics.jsonl", [&](const std::string& text) {
    ++warnings;
    said = text;
  });
  {
    const testing::FileSizeLimit limit(line.size() * 2 + 5);
    for (int i = 0; i < 4; ++i) file.write(line);
  }
  CHECK(file.missing().ends_with("metrics.jsonl' lacks 2 lines: File too large"));
  CHECK(read_text(folder / "metrics.jsonl") == line + line);
  CHECK(warnings == 1);
  CHECK(
      said.ends_with("metrics.jsonl' cannot be written: File too large; its lines are kept in memory and tried again"));
}

TEST_CASE("a file beyond the limit on sizes leaves the old one and nothing beside it", "[run]") {
  const TemporaryFolder folder;
  write_whole(folder / "a", "first");
  std::string said, help;
  try {
    const testing::FileSizeLimit limit(100);
    write_whole(folder / "a", std::string(1000, 'x'));
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::failed);
    said = error.diagnostics().front().message;
    help = error.diagnostics().front().help;
  }
  CHECK(said == "'" + (folder / "a") + "' cannot be written: File too large");
  CHECK(help == "a file may not become so large here: raise the limit (ulimit -f), or write to another disk");
  CHECK(read_text(folder / "a") == "first");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

TEST_CASE("a device or a pipe is written to and never replaced", "[run]") {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  write_whole(pipe, "through");
  char text[16] = {};
  CHECK(::read(reader, text, sizeof text) == 7);
  CHECK(std::string(text) == "through");
  ::close(reader);
  CHECK(fs::is_fifo(pipe));
  // A link to one, so that a mistake replaces the link and not the machine's device.
  fs::create_symlink("/dev/full", folder / "full");
  CHECK_THROWS_AS(write_whole(folder / "full", "text"), Error);
  CHECK(fs::read_symlink(folder / "full") == "/dev/full");
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 2);
}
