// The processes that a launcher (mpirun, srun) has started together with this one.
#pragma once

#include <optional>
#include <string_view>

#include "core/runtime/transport.h"

namespace pmaptrain {

// The number of processes, as the environment says. 1 if this process was not started by a launcher.
int launched_processes();

// Whether a launcher has started this process, be it the only one.
bool is_launched();

// The number of this process among them.
int launched_process();

// The tasks that srun has started together with this one, but without PMIx, so that they cannot join. 1 otherwise.
int tasks_without_pmix();

// Whether a launcher sets this variable of the environment to tell a process of its part in the job. A program that
// such a process starts has no part in it, and must not be given them.
bool tells_of_job(std::string_view variable);

// This process's part in the job of a launcher.
class Job {
 public:
  // Opens libpmaptrain_mpi.so and joins the other processes, if there are any. Throws Error (resource) if the library
  // is not found or cannot join.
  Job();
  // Leaves the job: waits until all processes do.
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  const Processes& processes() const { return processes_; }
  const HostPlace& host_place() const { return host_place_; }

 private:
  Processes processes_;
  HostPlace host_place_;
  void (*leave_)() = nullptr;
};

}  // namespace pmaptrain
