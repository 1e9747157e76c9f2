// What the heartbeats of the processes say about them. Without MPI, so that tests can say when a heartbeat came.
#pragma once

#include <cstdint>
#include <span>

#include "core/runtime/transport.h"

namespace pmaptrain::mpi {

// The thread of heartbeats runs at least this often, in seconds, unless the process is stopped.
inline constexpr double most_pause = 2;

// What a process waits for: messages of others, or its own hardware, whose work may wait for others too.
enum class Waiting : std::int64_t { no, for_messages, for_hardware };

// What a process says with a heartbeat. `progress` counts how often it has begun or ended a wait for
// others.
struct Beat {
  std::int64_t progress = 0, step = 0, phase = 0;
  Waiting waiting = Waiting::no;
};

// A process, as its heartbeats tell.
struct Peer {
  Beat beat;
  double heard = 0, advanced = 0;  // when the last heartbeat came, and when the last one with progress; in seconds
};

struct Verdict {
  int culprit = -1;        // the first process that is silent, or does not get on; -1: none
  bool is_silent = false;  // which of the two the culprit is
  int teller = -1;         // the first process that is no culprit
  bool all_wait = false;   // whether all other processes wait for messages
};

// How process `own`, which has waited for others for at least `limit` seconds, judges them at the time `present`. Its
// own element of `peers` is not looked at.
Verdict judge(std::span<const Peer> peers, int own, double present, double limit);

// Whether a process is expected to get on in this phase, unless it waits for others.
bool must_get_on(Transport::Phase phase);

}  // namespace pmaptrain::mpi
