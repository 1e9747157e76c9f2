// Where the runs of a sweep are started: in this process, or in all that a launcher (mpirun, srun) has started.
//
// Process 0 decides everything, and has the sweep's folder and its store. The others serve it: some fifty times a
// second process 0 asks each of them to start runs or to stop them, and is told which have ended. So no process waits
// for another one while a run is computed.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/clock.h"
#include "core/runtime/transport.h"
#include "core/spec/durations.h"
#include "core/sweep/launcher.h"
#include "core/sweep/messages.h"
#include "core/sweep/runner.h"

namespace pmaptrain::sweep {

class Runners {
 public:
  // This process alone. `own` outlives this.
  Runners(Launcher& own, Runner runner) : own_(own), all_{std::move(runner)} {}
  // For process 0 of several; every other process calls serve(). If a signal comes to one of these, `signalled` is
  // called with it, once.
  Runners(const pmaptrain::Processes& processes, std::vector<Runner> all, Launcher& own,
          std::function<void(int)> signalled);
  // Ends serve() in the other processes.
  ~Runners();
  Runners(const Runners&) = delete;
  Runners& operator=(const Runners&) = delete;

  const std::vector<Runner>& all() const { return all_; }

  // To be called before the first run. Throws Error: resource, if a process does not see the folder of the sweep;
  // data, if it does not see one of the paths. Sets the time after which a process that does not answer ends the sweep.
  void prepare(const std::filesystem::path& folder, const std::vector<std::string>& paths,
               const spec::Timeout& timeout);

  // As those of Launcher, of all processes. `runner` is an index of all().
  void start(std::size_t job, std::size_t runner, const std::vector<std::string>& arguments);
  std::optional<Exit> wait(double seconds);
  void stop();

 private:
  // Sends the requests, and takes the answers in. Throws Error (resource) if another process failed.
  void ask();

  Launcher& own_;
  std::vector<Runner> all_;
  Transport* transport_ = nullptr;
  std::function<void(int)> signalled_;
  std::vector<Request> requests_;  // to the other processes, by process - 1
  bool is_urgent_ = false;         // whether a request asks for something
  Clock::time_point asked_ = {};
  std::vector<Answer> answers_;  // the last ones
  std::deque<Exit> ended_;
  std::size_t own_runs_ = 0;
};

// Carries out what process 0 asks for, until it asks no more. `own` starts runs in this process. `stop` is the number
// of the signal that came to this process, which ends the whole sweep.
void serve(const pmaptrain::Processes& processes, Launcher& own, const std::atomic<int>& stop);

}  // namespace pmaptrain::sweep
