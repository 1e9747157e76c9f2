// Moves bytes between the processes that carry a mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/mesh/share.h"

namespace pmaptrain {

class Transport {
 public:
  virtual ~Transport() = default;

  struct Outgoing {
    int to = 0;
    const std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  struct Incoming {
    int from = 0;
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
  };
  // Sends and receives messages, and returns when all of them have been received and sent. Every process makes the same
  // sequence of calls. The messages of a call from one process to another are received in the order in which they are
  // sent, and the receiver knows their sizes. Called by one thread at a time.
  virtual void exchange(std::span<const Outgoing> sends, std::span<const Incoming> receives) = 0;

  // Replaces each value by the largest one that any process gives. Every process makes the same sequence of calls.
  virtual void largest(std::span<std::int64_t> values) = 0;

  // What this process does, which it tells the others with its heartbeats. They may expect it to get on while it reads
  // or computes. While it serves, it waits for others as long as processes that it has started compute, and leaves the
  // core to them.
  enum class Phase : std::uint8_t { preparing, reading, computing, recording, serving };
  virtual void tell(Phase phase, std::int64_t step) { (void)phase, (void)step; }
  // Sets the seconds after which a process that is silent, or does not get on, ends the run. 0: never; negative: the
  // transport chooses.
  virtual void set_timeout(double seconds) { (void)seconds; }

  // To be called by the thread that communicates while this process waits for its own hardware, whose work may wait for
  // that of other processes: at the beginning, again and again, and at the end. Looks after the other processes as a
  // wait for messages does. Throws, or ends the process, if one of them is gone; `ends` does not.
  enum class Wait : std::uint8_t { begins, goes_on, ends };
  virtual void watch(Wait wait) { (void)wait; }

  // Sends the bytes of process 0 to all others. Every process makes the same sequence of calls, with memory of equal
  // size.
  virtual void broadcast(std::span<std::byte> bytes) = 0;
};

// Which of the processes of a host this is that find the same hardware, for example the same GPUs.
struct HostPlace {
  int process = 0, processes = 1;
  friend bool operator==(const HostPlace&, const HostPlace&) = default;
};

// The processes that carry a source, and which of them this is.
struct Processes {
  Placement placement;
  Transport* transport = nullptr;  // outlives the modules that use it; null if there is one process
};

// The text that each process gives, by process. Every process calls it.
std::vector<std::string> texts_of_all(const Processes& processes, const std::string& own);

}  // namespace pmaptrain
