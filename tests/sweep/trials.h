// Sweeps without processes: their runs are calls in this process.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/sweep/launcher.h"
#include "core/sweep/run.h"
#include "tests/files.h"

namespace pmaptrain::testing {

// What ends a test's sweep at once, as a kill does.
struct Killed {};

// Runs each trial when it is waited for. `choose` says which of the started ones ends next.
class CalledTrials : public sweep::Launcher {
 public:
  std::function<std::size_t(std::size_t started)> choose = [](std::size_t) { return 0U; };
  // Called before a run starts.
  std::function<void()> starts = {};
  // Called before a run; what it returns takes the run's place.
  std::function<std::optional<sweep::Exit>(std::size_t job, const std::vector<std::string>& arguments)> instead = {};
  std::int64_t calls = 0, most_at_once = 0;

  void start(std::size_t job, const std::vector<std::string>& arguments) override;
  std::optional<sweep::Exit> wait(double seconds) override;
  void stop() override { stopped_ = true; }

 private:
  struct Started {
    std::size_t job;
    std::vector<std::string> arguments;
  };
  std::vector<Started> started_;
  bool stopped_ = false;
};

// A folder with a config of linear regression with a validation split, and sweep files beside it.
class SweepFolder {
 public:
  SweepFolder();
  // Writes sweep.yaml, which begins with this config; loads it. Without `vectorize` each trial is a run of its own.
  spec::Sweep sweep(const std::string& keys, bool vectorize = false) const;
  // Runs it in `name`, a folder of its own.
  std::vector<sweep::Row> run(const spec::Sweep& sweep, const std::string& name, CalledTrials& trials,
                              bool resume = false, int cores = 2) const;
  std::string path(const std::string& name) const { return folder_ / name; }

 private:
  test::TemporaryFolder folder_;
};

// Keys of a sweep: a grid of four rates; successive halving of eight trials.
extern const std::string rates, halved;

// The values of all runs: "0007: 0.125", a line each.
std::string values_of(const std::vector<sweep::Row>& rows);
// These, the decisions of all rungs, and every parameter of the trials' last checkpoints.
std::string results_of(const std::string& folder, const std::vector<sweep::Row>& rows);
// The text of the error that `f` throws.
std::string error_of(const std::function<void()>& f);

}  // namespace pmaptrain::testing
