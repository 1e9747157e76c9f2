// The command line for users who may not do everything.
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/sweep/store.h"
#include "tests/app/call.h"
#include "tests/app/process.h"
#include "tests/catch.h"

using namespace pmaptrain::tests;
using nlohmann::json;
namespace fs = std::filesystem;

namespace {

// What the command line gives to a user who may not do everything: root may, so a child of root's becomes nobody.
// `before` is done as that user. Status 126: it cannot be done here.
Finished call_as_user(const std::vector<std::string>& arguments, const std::function<bool()>& before = {}) {
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const std::string out = folder / "out", err = folder / "err";
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr unsigned nobody = 65534;
    // Root in a container may be allowed neither this nor anything else.
    if (::geteuid() == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) != 0) ::_exit(126);
    if (before && !before()) ::_exit(126);
    const Finished result = call(arguments);
    std::ofstream(out) << result.out;
    std::ofstream(err) << result.err;
    ::_exit(result.status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  Finished finished;
  if (WIFEXITED(status)) finished.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  finished.out = read_text(out);
  finished.err = read_text(err);
  return finished;
}

}  // namespace

TEST_CASE("files and folders that a user may not read or write are named with their exit status",
          "[app][process][user]") {
  const TemporaryFolder folder;
  const std::string closed = folder / "closed";
  fs::create_directory(closed);
  // Whoever is not root can remove what is in a folder only while he may write there.
  struct Reopen {
    ~Reopen() {
      for (const std::string& folder : folders) ::chmod(folder.c_str(), 0755);
    }
    std::vector<std::string> folders;
  } const reopen{{closed, folder / "other"}};
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  const auto put = [&](const std::string& name, const std::string& text, mode_t mode) {
    const std::string path = folder.write(name, text);
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    return path;
  };
  const std::string config = put("open.yaml", read_text(linear), 0644);
  const std::string secret = put("secret.yaml", read_text(linear), 0);
  const std::string data = put("secret.npy", "x", 0);
  const std::string program = put("p.pmt", "batch %x:f32[1]{}\nreturn y = %x\n", 0644);
  const Finished reachable = call_as_user({"validate", config}, [&] { return ::access(secret.c_str(), R_OK) != 0; });
  if (reachable.status != 0) {
    WARN("skipped: " + (reachable.status == 126 ? "this process may read everything, and cannot become who may not"
                                                : "a user cannot reach the temporary folder: " + reachable.err));
    return;
  }
  // The runs of somebody else, in a folder that only he writes to.
  REQUIRE(run_binary({"run", config, "--run-dir", folder / "other", "--max-steps", "1", "-q"}).status == 0);
  for (const auto& [path, mode] :
       {std::pair{closed, 0555}, {folder / "other", 0555}, {folder / "other/.pmaptrain", 0444}}) {
    REQUIRE(::chmod(path.c_str(), static_cast<mode_t>(mode)) == 0);
  }

  const Finished hidden = call_as_user({"validate", secret});
  CHECK(hidden.status == 2);
  CHECK(hidden.err == secret + ": error: the file cannot be read: Permission denied\n  help: check its permissions\n");
  CHECK(call_as_user({"exec", secret}).status == 2);
  CHECK(contains(call_as_user({"exec", secret}).err, "the file cannot be read: Permission denied"));

  const Finished input = call_as_user({"exec", program, "--input", "x=" + data});
  CHECK(input.status == 3);
  CHECK(contains(input.err, "cannot open '" + data + "': Permission denied"));
  const Finished images =
      call_as_user({"validate", config, "--set", "data.source={idx: {train: [" + data + ", " + data + "]}}", "--set",
                    "data.batch_size=8"});
  CHECK(images.status == 3);
  CHECK(contains(images.err, "cannot open '" + data + "': Permission denied"));

  const Finished run = call_as_user({"run", config, "--run-dir", closed + "/run", "--json"});
  CHECK(run.status == 4);
  CHECK(contains(json::parse(run.out)["errors"][0]["message"],
                 "the run folder '" + closed + "/run' cannot be made: Permission denied"));
  CHECK_FALSE(fs::exists(closed + "/run"));
  CHECK(call_as_user({"run", config, "--run-dir", closed + "/a/b/run"}).status == 4);
  const Finished written = call_as_user({"init", "cnn", closed + "/new.yaml"});
  CHECK(written.status == 1);
  CHECK(contains(written.err, "new.yaml' cannot be written: Permission denied"));

  // Somebody else's run is not taken, and a checkpoint that is closed to us is said to be so.
  const Finished taken = call_as_user({"run", config, "--run-dir", folder / "other", "--overwrite"});
  CHECK(taken.status == 4);
  CHECK(contains(taken.err, "Permission denied"));
  REQUIRE(::chmod((folder / "other/checkpoints/step-00000001/params.safetensors").c_str(), 0) == 0);
  const Finished evaluated = call_as_user({"eval", folder / "other", "--split", "train"});
  CHECK(evaluated.status == 3);
  CHECK(contains(evaluated.err, "params.safetensors': Permission denied"));
}

TEST_CASE("a run that cannot have the display's thread is refused before anything is made", "[app][user]") {
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const std::string config = folder.write("open.yaml", read_text(linear));
  // Of the user's threads, this process's own is one already.
  const auto have_no_thread = [] {
    const rlimit one{1, 1};
    if (::setrlimit(RLIMIT_NPROC, &one) != 0) return false;
    try {
      std::thread([] {}).join();
    } catch (const std::system_error&) {
      return true;
    }
    return false;
  };
  const Finished result = call_as_user({"run", config, "--run-dir", folder / "run"}, have_no_thread);
  if (result.status == 126) {
    WARN("skipped: this process may have any number of threads, and cannot become who may not");
    return;
  }
  CHECK(result.status == 4);
  CHECK(result.err ==
        "error: the thread that writes to standard error could not be started: Resource temporarily unavailable\n"
        "  help: other processes of this user, or a limit on them (ulimit -u), leave no room for it\n");
  CHECK_FALSE(fs::exists(folder / "run"));
}

TEST_CASE("a sweep in a folder that may not be written is shown, and refused before anything is changed",
          "[app][process][user]") {
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0755) == 0);
  const std::string sweep = folder.write("s.yaml",
                                         "base: base.yaml\ntrials: 2\nsearch: random\n"
                                         "parameters: {optimizer.learning_rate: {log_uniform: [0.001, 0.1]}}\n");
  folder.write("base.yaml",
               "data: {source: {synthetic_linear: {features: 3, examples_per_device: 40, noise: 0.1}}, validation: "
               "0.2, batch_size: 8}\n"
               "model: {layers: [dense: 1]}\nloss: mean_squared_error\n"
               "optimizer: {sgd: {}, learning_rate: 0.1}\n"
               "train: {duration: 2 epochs, log_every: never, eval_every: 1 epoch}\n");
  const std::string d = folder / "d", store = d + "/sweep.sqlite";
  REQUIRE(run_binary({"sweep", "run", sweep, "--dir", d}).status == 0);
  struct Reopen {
    ~Reopen() { ::chmod(folder.c_str(), 0755); }
    std::string folder;
  } const reopen{d};
  const auto close = [&] { REQUIRE((::chmod(store.c_str(), 0444) == 0 && ::chmod(d.c_str(), 0555) == 0)); };
  close();
  const Finished shown = call_as_user({"sweep", "show", d}, [&] { return ::access(d.c_str(), W_OK) != 0; });
  if (shown.status == 126) {
    WARN("skipped: this process may write everything, and cannot become who may not");
    return;
  }
  CHECK(shown.err.empty());
  CHECK(contains(shown.out, "2 trials (2 done), ordered by the best loss of each run\n"));
  CHECK(contains(call_as_user({"sweep", "best", d}).out, "run folder: " + d + "/trials/000"));
  const std::string before = pmaptrain::test::listing(d);
  const auto refused = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"sweep", "run", sweep, "--dir", d};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Finished finished = call_as_user(arguments);
    CHECK(finished.status == 4);
    CHECK(pmaptrain::test::listing(d) == before);
    return finished.err;
  };
  const bool owns = ::geteuid() != 0;  // then the marker is this user's, and only the folder and the store are closed
  const std::string cannot = owns ? "error: the sweep's store '" + store + "' may not be written\n"
                                  : "error: the sweep's folder '" + d + "' cannot be written: Permission denied\n";
  CHECK(contains(refused({"--resume"}), cannot));

  // What a sweep leaves that is killed: changes beside the store, and the memory that its readers shared.
  REQUIRE(::chmod(d.c_str(), 0755) == 0);
  REQUIRE(::chmod(store.c_str(), 0644) == 0);
  for (const char* const end : {"-wal", "-shm"}) fs::remove(store + end);  // of readers, who may not write either
  for (const bool shared : {true, false}) {
    fs::create_directory(folder / "killed");
    {
      pmaptrain::sweep::Store open(d, pmaptrain::sweep::Store::Access::write);
      std::vector<pmaptrain::sweep::Row> rows = open.rows();
      rows.front().value = shared ? 12345 : 54321;
      open.update(rows.front());
      for (const char* const end : {"", "-wal", "-shm"}) {
        const std::string name = std::string("/sweep.sqlite") + end;
        if (shared || name != "/sweep.sqlite-shm") fs::copy_file(d + name, (folder / "killed") + name);
      }
    }
    REQUIRE(::chmod((folder / "killed").c_str(), 0555) == 0);
    const Finished killed = call_as_user({"sweep", "show", folder / "killed"});
    REQUIRE(::chmod((folder / "killed").c_str(), 0755) == 0);
    fs::remove_all(folder / "killed");
    if (shared) {
      CHECK(contains(killed.out, " 12345 "));
      continue;
    }
    CHECK(killed.status == 4);
    const std::string file = (folder / "killed") + "/sweep.sqlite";
    CHECK(killed.err == "error: the sweep's store '" + file + "' cannot be read: the changes in '" + file +
                            "-wal' cannot be applied in a folder that may not be written\n"
                            "  help: copy the sweep's folder to where you may write, and name the copy\n");
  }
}
