#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/commands/commands.h"
#include "app/display/terminal.h"
#include "app/signals.h"
#include "core/base/error.h"
#include "core/runtime/backends.h"
#include "core/runtime/mpi/job.h"

namespace {

bool is_closed_pipe(int fd) {
  pollfd poll_fd{fd, POLLOUT, 0};
  return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLERR) != 0;
}

// One of several tasks of srun that do not know each other tells so: they may have been meant to be one run.
void tell_of_separate_tasks() {
  const int tasks = pmaptrain::tasks_without_pmix();
  const char* const number = std::getenv("SLURM_PROCID");
  if (tasks == 1 || number == nullptr || std::string_view(number) != "0") return;
  std::cerr << "warning: srun has started " << tasks
            << " tasks, and each works alone, because they cannot join without PMIx; srun --mpi=pmix joins them\n";
}

// Runs the program as one of the processes of a launcher. Process 0 has the terminal; the others write nothing, except
// errors that process 0 does not have (run_program).
int run_in_job(const std::vector<std::string>& arguments, const pmaptrain::app::Streams& streams) {
  std::optional<pmaptrain::Job> job;
  try {
    job.emplace();
  } catch (const pmaptrain::Error& error) {
    if (pmaptrain::launched_process() == 0) std::cerr << error.what();
    return static_cast<int>(error.status());
  }
  pmaptrain::set_host_place(job->host_place());
  pmaptrain::Agreement agreement(job->processes());
  std::ostream nothing(nullptr);
  const bool is_first = job->processes().placement.process == 0;
  return pmaptrain::app::run_program(
      arguments, {is_first ? streams.out : nothing, is_first ? streams.err : nothing, is_first ? streams.out_fd : -1,
                  is_first ? streams.err_fd : -1, &agreement});
}

}  // namespace

int main(int argc, char** argv) {
  pmaptrain::app::end_process_one_by_signals();
  pmaptrain::display::let_writes_fail();
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  pmaptrain::app::Streams streams{std::cout, std::cerr, STDOUT_FILENO, STDERR_FILENO};
  tell_of_separate_tasks();
  int status = pmaptrain::launched_processes() > 1 ? run_in_job(arguments, streams)
                                                   : pmaptrain::app::run_program(arguments, streams);
  // What was asked for did not get out: a full disk, say. A reader that went away (a closed pipe) is no failure.
  if (!std::cout.flush() && !is_closed_pipe(STDOUT_FILENO)) {
    std::cerr << "error: standard output could not be written\n";
    if (status == 0) status = static_cast<int>(pmaptrain::ExitStatus::failed);
  }
  if (pmaptrain::gpus_are_given_up()) std::_Exit(status);
  return status;
}
