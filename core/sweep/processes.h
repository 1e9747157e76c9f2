// Runs as processes of this program, on Linux.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>

#include "core/base/descriptor.h"
#include "core/sweep/launcher.h"

namespace pmaptrain::sweep {

// Each process has a process group of its own, so that an interrupt from the terminal reaches the sweep alone, which
// then stops its runs. A sweep that is killed takes its runs along: they get SIGTERM, and end with a checkpoint.
class Processes : public Launcher {
 public:
  // `program` is the executable. Gives SIGCHLD its default action: where it is ignored, ends of processes are lost.
  explicit Processes(std::filesystem::path program);
  // Kills what still runs.
  ~Processes() override;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  void start(std::size_t job, const std::vector<std::string>& arguments) override;
  std::optional<Exit> wait(double seconds) override;
  void stop() override;

  // The executable of this process.
  static std::filesystem::path this_program();

 private:
  struct Child {
    std::size_t job = 0;
    Descriptor handle;    // readable once the process has ended
    Descriptor out, err;  // files without a name
  };
  std::filesystem::path program_;
  std::map<pid_t, Child> children_;
};

}  // namespace pmaptrain::sweep
