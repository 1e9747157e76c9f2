// Who may write into a run folder, and that checkpoints get there whole.
#include "core/run/run_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <vector>

#include "core/base/error.h"
#include "tests/catch.h"
#include "tests/files.h"
#include "tests/run/file_size_limit.h"
#include "tests/run/test_file_systems.h"
#include "tests/slice.h"

using namespace pmaptrain;
using namespace pmaptrain::run;

namespace {

namespace fs = std::filesystem;
using test::read_text;
using test::TemporaryFolder;
using test::write_text;

// The error of `action`: its status and its words. Status done: there was none.
std::pair<ExitStatus, Diagnostic> folder_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.status(), error.diagnostics().front()};
  }
  return {ExitStatus::done, {}};
}

void write_into(const Directory& dir, const std::string& name, std::string_view text) {
  FileWriter file(dir.place(name));
  file.write(std::as_bytes(std::span(text)));
  file.close();
}

int entries_in(const fs::path& path) {
  return static_cast<int>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
}

RunFolder make_folder(const fs::path& dir, const RunFolderOptions& options, std::string_view config = "name: cnn\n") {
  RunFolder folder = RunFolder::claim(dir, options);
  folder.begin(config);
  return folder;
}

}  // namespace

TEST_CASE("an existing run folder is refused with the ready commands", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "runs/cnn";
  make_folder(dir, {});
  RunFolderOptions options;
  options.command = "pmaptrain run configs/cnn.yaml";
  const auto [status, error] = folder_error([&] { make_folder(dir, options); });
  CHECK(status == ExitStatus::usage);
  CHECK(error.message == "the run folder '" + dir.string() + "' exists");
  CHECK(error.help ==
        "one of\n"
        "pmaptrain run configs/cnn.yaml --resume       # continue it\n"
        "pmaptrain run configs/cnn.yaml --overwrite    # replace it\n"
        "pmaptrain run configs/cnn.yaml --name cnn-2   # keep it, write another");
  CHECK(folder_error([&] { RunFolder::check(dir, options); }).second.help == error.help);

  options.explicit_name = true;
  const std::string help = folder_error([&] { make_folder(dir, options); }).second.help;
  CHECK(help.find("pmaptrain run configs/cnn.yaml --name cnn --resume ") != std::string::npos);
  CHECK(help.find("pmaptrain run configs/cnn.yaml --name cnn --overwrite ") != std::string::npos);
  CHECK(read_text(dir / "config.yaml") == "name: cnn\n");
}

TEST_CASE("the ready commands are quoted as a shell reads them", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "runs/it's mine";
  make_folder(dir, {});
  RunFolderOptions options;
  options.command = "pmaptrain run a.yaml";
  const std::string help = folder_error([&] { RunFolder::check(dir, options); }).second.help;
  CHECK(help.find("--name 'it'\\''s mine-2'") != std::string::npos);
}

TEST_CASE("no run folder is suggested beside what is no folder, nor beside one that no name leads to", "[run]") {
  const TemporaryFolder root;
  RunFolderOptions options;
  options.command = "pmaptrain run a.yaml";
  const auto refusal = [&](const fs::path& dir) {
    const auto [status, error] = folder_error([&] { RunFolder::check(dir, options); });
    CHECK(status == ExitStatus::usage);
    return error.message + " | " + error.help;
  };
  write_text(root / "file", "text");
  const std::string file = root / "file";
  CHECK(refusal(file) == "the run folder '" + file +
                             "' exists and is no folder | choose another with --name or "
                             "--run-dir");
  options.explicit_dir = true;
  CHECK(refusal("/dev/null") == "the run folder '/dev/null' exists and is no folder | choose another with --run-dir");
  const std::string root_is_refused = refusal("/");
  CHECK(root_is_refused.starts_with("the run folder '/' exists | "));
  CHECK(root_is_refused.ends_with("; choose another with --run-dir"));
  CHECK(refusal("..").find("..-2") == std::string::npos);
  CHECK(refusal(".").find(".-2") == std::string::npos);
}

TEST_CASE("overwriting replaces what pmaptrain wrote and nothing else", "[run]") {
  const TemporaryFolder root;
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  const fs::path ours = root / "ours";
  make_folder(ours, {}).commit_checkpoint(1, [](const Directory& dir) { write_text(dir.path() / "state.json", "{}"); });
  write_text(ours / "metrics.jsonl", "{}\n");
  write_text(ours / "notes.txt", "mine");
  const RunFolder again = make_folder(ours, overwrite);
  CHECK_FALSE(fs::exists(ours / "checkpoints"));
  CHECK_FALSE(fs::exists(ours / "metrics.jsonl"));
  CHECK(read_text(ours / "notes.txt") == "mine");

  const fs::path foreign = root / "foreign";
  fs::create_directory(foreign);
  write_text(foreign / "config.yaml", "precious");
  write_text(foreign / ".pmaptrain", "");
  const auto [status, error] = folder_error([&] { make_folder(foreign, overwrite); });
  CHECK(status == ExitStatus::usage);
  CHECK(error.message == "'" + foreign.string() + "' was not written by pmaptrain, so --overwrite leaves it alone");
  CHECK(read_text(foreign / "config.yaml") == "precious");

  write_text(root / "file", "text");
  CHECK(folder_error([&] { make_folder(root / "file", overwrite); }).first == ExitStatus::usage);
  CHECK(folder_error([&] { make_folder(root / "file/below", overwrite); }).first == ExitStatus::resource);
  fs::create_directory(root / "empty");
  CHECK(folder_error([&] { make_folder(root / "empty", {}); }).first == ExitStatus::usage);
  CHECK(folder_error([&] { make_folder(root / "empty", overwrite); }).first == ExitStatus::done);
}

TEST_CASE("a second writer in a run folder is refused as long as the first lives", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "run";
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  int ready[2], go[2];
  REQUIRE(::pipe(ready) == 0);
  REQUIRE(::pipe(go) == 0);
  const pid_t child = ::fork();
  if (child == 0) {  // holds the folder until it is told to go, and goes without any tidying
    const RunFolder folder = make_folder(dir, {});
    char byte = 1;
    if (::write(ready[1], &byte, 1) != 1 || ::read(go[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  const auto [status, error] = folder_error([&] { make_folder(dir, overwrite); });
  CHECK(status == ExitStatus::resource);
  CHECK(error.message == "another pmaptrain is writing the run folder '" + dir.string() + "'");
  CHECK(folder_error([&] { RunFolder::check(dir, {}); }).first == ExitStatus::resource);
  REQUIRE(::write(go[1], &byte, 1) == 1);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(folder_error([&] { make_folder(dir, overwrite); }).first == ExitStatus::done);
  for (const int fd : {ready[0], ready[1], go[0], go[1]}) ::close(fd);
}

TEST_CASE("a checkpoint waits for the disk once for each file, and four times for folders and links", "[run]") {
  const TemporaryFolder root;
  const RunFolder folder = make_folder(root / "run", {});
  const auto fill = [](const Directory& into) { write_into(into, "state.json", "{}"); };
  folder.commit_checkpoint(1, fill);  // makes `checkpoints`
  for (const char* const best : {"", "step-00000002"}) {
    testing::FailingFileSystem counted;
    {
      const run::InstalledFileSystem installed(counted);
      folder.commit_checkpoint(2, fill, best);
    }
    CHECK(counted.count(testing::Call::flush) == 1 + 4);
  }
  CHECK(fs::read_symlink(folder.path() / "checkpoints/best") == "step-00000002");
}

TEST_CASE("a checkpoint is there whole or not at all, and the last one is linked", "[run]") {
  const TemporaryFolder root;
  const RunFolder folder = make_folder(root / "run", {});
  const fs::path checkpoints = folder.path() / "checkpoints";
  const auto write = [](std::string text) {
    return [text = std::move(text)](const Directory& dir) { write_text(dir.path() / "state.json", text); };
  };
  folder.commit_checkpoint(100, write("a"));
  CHECK(read_text(checkpoints / "step-00000100/state.json") == "a");
  CHECK(fs::read_symlink(checkpoints / "last") == "step-00000100");
  fs::create_directory(checkpoints / ".tmp-step-00000200");  // of a process that died
  write_text(checkpoints / ".tmp-step-00000200/junk", "junk");
  folder.commit_checkpoint(200, write("b"));
  CHECK_FALSE(fs::exists(checkpoints / "step-00000200/junk"));
  folder.commit_checkpoint(200, write("c"));
  CHECK(read_text(checkpoints / "last/state.json") == "c");

  CHECK_THROWS_AS(folder.commit_checkpoint(300,
                                           [](const Directory& dir) {
                                             write_text(dir.path() / "half", "x");
                                             fail_running("no");
                                           }),
                  Error);
  CHECK(fs::read_symlink(checkpoints / "last") == "step-00000200");
  CHECK(entries_in(checkpoints) == 3);  // two steps and a link

  folder.link_checkpoint("best", "step-00000100");
  CHECK(find_checkpoint(folder.path(), "best") == checkpoints / "step-00000100");
  CHECK(find_checkpoint(folder.path(), "200") == checkpoints / "step-00000200");
  const auto [status, error] = folder_error([&] { find_checkpoint(folder.path(), "300"); });
  CHECK(status == ExitStatus::usage);
  CHECK(error.message == "the run '" + folder.path().string() + "' has no checkpoint '300'");
  CHECK(error.help == "it has 100, 200, last, best");
  CHECK(folder_error([&] { find_checkpoint(root / "none", "last"); }).first == ExitStatus::usage);
}

TEST_CASE("a checkpoint that cannot be written is an error with the path and the system's reason", "[run]") {
  const TemporaryFolder root;
  const RunFolder folder = make_folder(root / "run", {});
  write_text(folder.path() / "checkpoints", "in the way");
  const auto [status, error] = folder_error([&] { folder.commit_checkpoint(1, [](const Directory&) {}); });
  CHECK(status == ExitStatus::failed);
  CHECK(error.message.find("/run/checkpoints' cannot be made: ") != std::string::npos);
  const auto [other, full] = folder_error([] { fail_file("a/b", "written", ENOSPC); });
  CHECK(other == ExitStatus::failed);
  CHECK(full.message == "'a/b' cannot be written: No space left on device");
  CHECK(full.help == "free some space, or write to another disk");
}

TEST_CASE("a run folder that cannot be begun is not left behind", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "run";
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  const auto create = [&](const RunFolderOptions& options) {
    return folder_error([&] {
      const testing::FileSizeLimit limit(10);
      make_folder(dir, options);
    });
  };
  const auto [status, error] = create({});
  CHECK(status == ExitStatus::resource);
  CHECK(error.message == "the run folder '" + dir.string() + "' cannot be made: '" + (dir / ".pmaptrain").string() +
                             "' cannot be written: File too large");
  CHECK_FALSE(fs::exists(dir));
  fs::create_directory(dir);  // somebody's own, and empty: it stays, and stays empty
  CHECK(create(overwrite).first == ExitStatus::resource);
  CHECK(entries_in(dir) == 0);
}

TEST_CASE("a run folder's path means what the system takes it for", "[run]") {
  const TemporaryFolder root;
  fs::create_directories(root / "far/deep");
  fs::create_directory_symlink(root / "far/deep", root / "link");
  make_folder(root / "link/../run/", {});
  CHECK(fs::exists(root / "far/run/.pmaptrain"));
  CHECK_FALSE(fs::exists(root / "run"));
}

TEST_CASE("a folder that pmaptrain did not write is not offered for replacement", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "foreign";
  fs::create_directories(dir);
  write_text(dir / "thesis.txt", "mine");
  RunFolderOptions options;
  options.explicit_dir = true;
  const auto [status, error] = folder_error([&] { RunFolder::check(dir, options); });
  CHECK(status == ExitStatus::usage);
  CHECK(error.help == "pmaptrain did not write it; choose another\npmaptrain run CONFIG --run-dir " + dir.string() +
                          "-2   # keep it, write another");
}

TEST_CASE("what a killed run left half-written goes with --overwrite, and what looks like it stays", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "run";
  make_folder(dir, {});
  for (const char* const ours : {".tmp-config.yaml-17", ".tmp-summary.json-0123abcd"}) write_text(dir / ours, "half");
  fs::create_directories(dir / ".tmp-checkpoints-17/step-00000100");
  for (const char* const other : {".tmp-notes.txt-17", ".tmp-config.yaml-mine", ".tmp-config.yaml"}) {
    write_text(dir / other, "mine");
  }
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  make_folder(dir, overwrite);
  CHECK(entries_in(dir) == 5);  // the marker, the config and what is somebody's own
  CHECK(read_text(dir / ".tmp-config.yaml-mine") == "mine");
}

TEST_CASE("a folder whose making was killed is taken as a new one", "[run]") {
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  for (const std::string& marker : {std::string(), std::string("pmaptrain run fol")}) {
    for (const bool temporary : {false, true}) {
      INFO(marker << temporary);
      const TemporaryFolder root;
      const fs::path dir = root / "run";
      fs::create_directory(dir);
      write_text(dir / (temporary ? ".tmp-.pmaptrain-17" : ".pmaptrain"), marker);
      CHECK(folder_error([&] { RunFolder::check(dir, {}); }).second.help.find("--overwrite") != std::string::npos);
      make_folder(dir, overwrite);
      CHECK(entries_in(dir) == 2);
      CHECK(read_text(dir / ".pmaptrain").starts_with("pmaptrain run folder\n"));
      CHECK(folder_error([&] { make_folder(dir, overwrite); }).first == ExitStatus::done);
    }
  }
}

TEST_CASE("claiming a run folder touches nothing in it, and makes none", "[run]") {
  const TemporaryFolder root;
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  make_folder(root / "run", {});
  const std::string before = test::listing(root / "run");
  {
    const RunFolder claimed = RunFolder::claim(root / "run", overwrite);
    CHECK(folder_error([&] { RunFolder::check(root / "run", overwrite); }).first == ExitStatus::resource);
    const RunFolder other = RunFolder::claim(root / "new", {});
  }
  CHECK(test::listing(root / "run") == before);
  CHECK_FALSE(fs::exists(root / "new"));
}

TEST_CASE("of two that claim a folder that is not there, the second to begin is refused", "[run]") {
  const TemporaryFolder root;
  for (const bool overwrite : {false, true}) {
    INFO(overwrite);
    const fs::path dir = root / (overwrite ? "a" : "b");
    RunFolderOptions options;
    options.overwrite = overwrite;
    RunFolder first = RunFolder::claim(dir, options), second = RunFolder::claim(dir, options);
    first.begin("name: first\n");
    const auto [status, error] = folder_error([&] { second.begin("name: second\n"); });
    CHECK(status == ExitStatus::resource);
    CHECK(error.message == "another pmaptrain is writing the run folder '" + dir.string() + "'");
    CHECK(read_text(dir / "config.yaml") == "name: first\n");
  }
}

TEST_CASE("a checkpoint goes into the folder that was opened, wherever that is moved", "[run]") {
  const TemporaryFolder root;
  const RunFolder folder = make_folder(root / "run", {});
  CHECK_NOTHROW(folder.check_in_place());
  fs::rename(root / "run", root / "moved");
  make_folder(root / "run", {});
  const std::string other = test::listing(root / "run");
  folder.commit_checkpoint(1, [](const Directory& dir) { write_into(dir, "state.json", "{}"); });
  CHECK(read_text(root / "moved/checkpoints/last/state.json") == "{}");
  CHECK(test::listing(root / "run") == other);
  const auto [status, error] = folder_error([&] { folder.check_in_place(); });
  CHECK(status == ExitStatus::failed);
  CHECK(error.message ==
        "'" + (root / "run") + "' does not lead to the run folder any more, which is '" + (root / "moved") + "' now");
  CHECK_FALSE(folder.is_removed());
  fs::remove_all(root / "moved");
  CHECK(folder.is_removed());
  CHECK(folder_error([&] { folder.check_in_place(); }).second.message ==
        "the run folder '" + (root / "run") + "' was removed while the run went on");
}

TEST_CASE("checkpoints that may not be read are said to be so", "[run]") {
  const TemporaryFolder root;
  fs::create_directory(root / "run");
  fs::create_symlink("checkpoints", root / "run/checkpoints");  // nobody can, and root neither
  const auto [status, error] = folder_error([&] { find_checkpoint(root / "run", "last"); });
  CHECK(status == ExitStatus::data);
  CHECK(error.message == "'" + (root / "run/checkpoints") + "' cannot be read: Too many levels of symbolic links");
  CHECK(error.help == "check the permissions of the run folder");
}

TEST_CASE("of many processes that begin a run in one empty folder at once, one writes at a time", "[run]") {
  for (const std::uint32_t round : test::some_seeds(2, 20, 4)) {
    INFO("round " << round);
    const TemporaryFolder root;
    const fs::path dir = root / "run";
    if (round % 2 == 0) fs::create_directory(dir);
    RunFolderOptions overwrite;
    overwrite.overwrite = true;
    std::vector<pid_t> children;
    for (int i = 0; i < 6; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        // 0: had the folder for itself; 4: another one has it; else: what must not be.
        int status = 1;
        try {
          const RunFolder folder = make_folder(dir, overwrite, "name: " + std::to_string(::getpid()) + "\n");
          const std::string mine = read_text(dir / "config.yaml");
          ::usleep(2000);
          const bool alone =
              mine == "name: " + std::to_string(::getpid()) + "\n" && mine == read_text(dir / "config.yaml");
          folder.commit_checkpoint(1, [](const Directory& into) { write_into(into, "state.json", "{}"); });
          status = alone ? 0 : 2;
        } catch (const Error& error) {
          status = static_cast<int>(error.status());
        }
        ::_exit(status);
      }
      children.push_back(child);
    }
    int winners = 0;
    for (const pid_t child : children) {
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      CHECK((WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 4)));
      winners += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 1 : 0;
    }
    CHECK(winners >= 1);
    CHECK(read_text(dir / ".pmaptrain").starts_with("pmaptrain run folder\n"));
    CHECK(find_checkpoint(dir, "last") == dir / "checkpoints/step-00000001");
    for (const auto& entry : fs::directory_iterator(dir)) {
      CHECK_FALSE(entry.path().filename().string().starts_with(".tmp"));
    }
  }
}

TEST_CASE("an old run that cannot be put aside stays as it was, and what is beside its checkpoints stays", "[run]") {
  const TemporaryFolder root;
  const fs::path dir = root / "run";
  RunFolderOptions overwrite;
  overwrite.overwrite = true;
  make_folder(dir, {}).commit_checkpoint(7, [](const Directory& into) { write_into(into, "state.json", "{}"); });
  for (const char* const name : {"summary.json", "metrics.jsonl", "log.txt", "threshold.json"}) {
    write_text(dir / name, name);
  }
  fs::create_directory(dir / "checkpoints/backup");
  write_text(dir / "checkpoints/backup/notes.txt", "mine");
  const std::string before = test::listing(dir);
  {
    const testing::FileSizeLimit limit(3);
    const auto [status, error] = folder_error([&] { make_folder(dir, overwrite, "name: new\n"); });
    CHECK(status == ExitStatus::resource);
    CHECK(error.message == "the run folder '" + dir.string() + "' cannot be replaced: '" +
                               (dir / "config.yaml").string() + "' cannot be written: File too large");
  }
  CHECK(test::listing(dir) == before);
  make_folder(dir, overwrite, "name: new\n");
  CHECK(entries_in(dir) == 3);
  CHECK(read_text(dir / "config.yaml") == "name: new\n");
  CHECK(test::listing(dir / "checkpoints") == "backup\nbackup/notes.txt: mine\n");
}
