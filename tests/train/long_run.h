// A run in which every step leaves something behind of every kind, and what of it must be the same bits however often
// the run was interrupted.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/app/call.h"
#include "tests/files.h"

namespace pmaptrain::testing {

// What a run left, by name, without its times: files of checkpoints, where links lead, lines, the summary.
using Kept = std::map<std::string, std::string>;
// The names of what differs; empty where nothing does.
std::string differences(const Kept& a, const Kept& b);

// A JSON text with 0 for the numbers and strings that have these keys, wherever they are. (Parsing it would take most
// of the time of tests that compare hundreds of runs.)
std::string with_zeros(std::string text, const std::vector<std::string>& keys);

// A folder with data, a config, and runs of it.
class LongRun {
 public:
  // Four devices, masked batches in microbatches, dropout, a schedule with a warm-up, clipping, plateau, EMA,
  // validation, best, early stopping, loss spikes, and some steps that are skipped. `set` are further --set options.
  explicit LongRun(int steps, std::vector<std::string> set = {});

  // The arguments of a run in the folder `name`.
  std::vector<std::string> command(const std::string& name, const std::vector<std::string>& more = {}) const;
  // Runs it in this process.
  tests::Finished run(const std::string& name, const std::vector<std::string>& more = {}) const;
  // Of a run that must end with status 0.
  void complete(const std::string& name, const std::vector<std::string>& more = {}) const;

  const std::string& config() const { return config_; }
  std::string path(const std::string& name) const { return folder_ / name; }
  Kept kept(const std::string& name) const;

 private:
  test::TemporaryFolder folder_;
  std::string config_;
  std::vector<std::string> set_;
};

// The --set options of an ensemble of three, of whom one stops early, and whose best evaluations are at several steps.
std::vector<std::string> three_members();

}  // namespace pmaptrain::testing
