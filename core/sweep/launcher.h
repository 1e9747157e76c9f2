// Runs of this program that a sweep starts on this host: the seam between the scheduling of trials and processes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace pmaptrain::sweep {

// How a run ended. It is one of: an exit status, or the signal that ended the process.
struct Exit {
  std::size_t job = 0;  // the number that start() was given
  int status = 0, signal = 0;
  std::string out, err;  // what it wrote
};

class Launcher {
 public:
  virtual ~Launcher() = default;
  // Starts the program with these arguments: a command and its options. Throws Error (resource).
  virtual void start(std::size_t job, const std::vector<std::string>& arguments) = 0;
  // Waits for a run to end, up to `seconds`. None if none ended.
  virtual std::optional<Exit> wait(double seconds) = 0;
  // Asks all runs to end with a checkpoint. They are waited for as before.
  virtual void stop() = 0;
};

}  // namespace pmaptrain::sweep
