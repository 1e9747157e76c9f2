// What a process that waits concludes from the heartbeats of the others.
#include <vector>

#include "core/runtime/mpi/peers.h"
#include "tests/catch.h"

namespace pmaptrain::testing::heartbeats {
namespace {

using mpi::Peer;
using mpi::Verdict;

constexpr double present = 1000, limit = 10;

// A process whose last heartbeat is so many seconds old, and the last one with progress.
Peer peer_of(Transport::Phase phase, mpi::Waiting waiting, double heard, double advanced) {
  return {{7, 3, static_cast<std::int64_t>(phase), waiting}, present - heard, present - advanced};
}
Peer waiting(double heard, double advanced, mpi::Waiting what = mpi::Waiting::for_messages) {
  return peer_of(Transport::Phase::computing, what, heard, advanced);
}
Peer busy(Transport::Phase phase, double heard, double advanced) {
  return peer_of(phase, mpi::Waiting::no, heard, advanced);
}

// The judgement of process 0, which says nothing to itself.
Verdict judge(std::vector<Peer> others, double timeout = limit) {
  others.insert(others.begin(), Peer());
  return mpi::judge(others, 0, present, timeout);
}

}  // namespace

TEST_CASE("a process that is silent for longer than the timeout is the culprit, whatever it said last", "[runtime]") {
  for (const Peer& silent :
       {waiting(10.1, 30), busy(Transport::Phase::computing, 10.1, 30), busy(Transport::Phase::recording, 10.1, 30)}) {
    const Verdict verdict = judge({waiting(0.1, 12), silent});
    CHECK(verdict.culprit == 2);
    CHECK(verdict.is_silent);
    CHECK(verdict.teller == 0);
    CHECK_FALSE(verdict.all_wait);
  }
  CHECK(judge({waiting(9.9, 30)}).culprit == -1);
}

TEST_CASE("a process that does not get on while it reads or computes is the culprit", "[runtime]") {
  for (const Transport::Phase phase : {Transport::Phase::reading, Transport::Phase::computing}) {
    const Verdict verdict = judge({busy(phase, 0.1, 10.1)});
    CHECK(verdict.culprit == 1);
    CHECK_FALSE(verdict.is_silent);
    CHECK(judge({busy(phase, 0.1, 9.9)}).culprit == -1);
  }
  for (const Transport::Phase phase : {Transport::Phase::preparing, Transport::Phase::recording}) {
    const Verdict verdict = judge({busy(phase, 0.1, 500)});
    CHECK(verdict.culprit == -1);
    CHECK_FALSE(verdict.all_wait);
  }
}

TEST_CASE("a process that waits for its GPUs need not get on, but must answer", "[runtime]") {
  const auto on_gpus = [](double heard, double advanced) {
    return waiting(heard, advanced, mpi::Waiting::for_hardware);
  };
  CHECK(judge({on_gpus(0.1, 500)}).culprit == -1);
  CHECK_FALSE(judge({on_gpus(0.1, 500)}).all_wait);
  CHECK_FALSE(judge({on_gpus(0.1, 500), waiting(0.1, 500)}).all_wait);
  CHECK(judge({on_gpus(10.1, 500)}).is_silent);
  // One that keeps the GPUs of the others waiting is the culprit.
  CHECK(judge({on_gpus(0.1, 500), busy(Transport::Phase::reading, 0.1, 10.1)}).culprit == 2);
}

TEST_CASE("all wait for each other only if each has just said so", "[runtime]") {
  CHECK(judge({waiting(0.3, 10), waiting(1.9, 20)}).all_wait);
  CHECK(judge({waiting(0.3, 10), waiting(1.9, 20)}).culprit == -1);
  // One that has got on since this one began to wait may have sent what is waited for.
  CHECK_FALSE(judge({waiting(0.3, 9.9), waiting(0.3, 20)}).all_wait);
  // A heartbeat that is older than two seconds, or than half of the timeout, proves nothing: its process may have been
  // stopped since then, and is named when the timeout is over.
  CHECK_FALSE(judge({waiting(0.3, 20), waiting(2.1, 20)}).all_wait);
  CHECK(judge({waiting(1.4, 20)}, 3).all_wait);
  CHECK_FALSE(judge({waiting(1.6, 20)}, 3).all_wait);
  CHECK(judge({waiting(1.6, 20)}, 3).culprit == -1);
  CHECK(judge({waiting(3.1, 20)}, 3).culprit == 1);
}

TEST_CASE("the first process without fault tells of the first culprit", "[runtime]") {
  const std::vector<Peer> peers{busy(Transport::Phase::reading, 0.1, 11), waiting(0.1, 11), waiting(20, 30), Peer()};
  const Verdict verdict = mpi::judge(peers, 3, present, limit);
  CHECK(verdict.culprit == 0);
  CHECK_FALSE(verdict.is_silent);
  CHECK(verdict.teller == 1);
}

}  // namespace pmaptrain::testing::heartbeats
