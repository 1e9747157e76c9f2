// Messages by which each process tells the others that it is there, and what it does.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/mpi/peers.h"
#include "core/runtime/transport.h"

namespace pmaptrain::mpi {

class Heartbeats {
 public:
  // Starts the thread that sends and receives heartbeats. `all` is used by this alone.
  Heartbeats(MPI_Comm all, const Placement& placement);
  // Ends the thread. Every process must end its heartbeats.
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  void tell(Transport::Phase phase, std::int64_t step) {
    if (phase == Transport::Phase::computing) ++submissions_;
    phase_ = phase;
    step_ = step;
  }
  void set_timeout(double seconds) { timeout_ = seconds; }
  bool is_serving() const { return phase_ == Transport::Phase::serving; }
  // To be called by the thread that communicates: before it waits for other processes, and after.
  void begin_waiting();
  void end_waiting();
  // The same if it waits for the hardware of its own process.
  void begin_watching();
  void end_watching();
  // Ends the job, with a message that names the culprit, if a process was silent or did not get on for too long.
  void check();

 private:
  struct Host {
    char name[MPI_MAX_PROCESSOR_NAME] = {};
    std::int64_t pid = 0;
  };

  void run();
  double timeout() const;
  std::string name_of(int process) const;

  const MPI_Comm all_;
  const int process_, processes_;
  std::vector<Host> hosts_;
  std::atomic<Transport::Phase> phase_ = Transport::Phase::preparing;
  std::atomic<std::int64_t> step_ = 0, progress_ = 0, submissions_ = 0;
  std::atomic<Waiting> waiting_ = Waiting::no;
  std::atomic<bool> stop_ = false;
  std::atomic<double> timeout_ = -1;
  // When the thread of heartbeats last ran, and when it last went on after a pause, for example of the whole job.
  std::atomic<double> ticked_ = 0, continued_ = 0;
  // Of the thread that communicates.
  double waits_since_ = 0, checked_ = 0, worked_since_ = 0, slowest_ = 0;

  std::mutex mutex_;
  std::vector<Peer> peers_;  // guarded by the mutex
  std::vector<Beat> received_, sent_;
  std::thread thread_;
};

}  // namespace pmaptrain::mpi
