// Several threads end the ranks of a communicator while some of them are inside of a call that does not return.
#include "core/runtime/gpu/abort_coordinator.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "core/runtime/gpu/periodic_checker.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"

namespace pmaptrain::test {

using namespace std::chrono_literals;

namespace {

// A communicator of a library that counts as NCCL does: with the last rank that ends, all of them are freed. Until then
// no thread may be inside of a call, and all must be without graphs.
struct Library {
  explicit Library(std::size_t ranks) : coordinator(ranks), has_ended(ranks) {}

  gpu::AbortCoordinator::AbortRank end_of(std::size_t rank) {
    return [this, rank] {
      if (!is_known) return false;
      end(rank);
      return true;
    };
  }
  void end(std::size_t rank) {
    if (has_ended[rank].exchange(true)) ++ended_again;
    if (++ended < static_cast<int>(has_ended.size())) return;
    freed_in_use = inside > 0 || graphs > 0;
    is_freed = true;
  }
  // On a rank's thread, with a graph until it finishes: a call that returns when the rank ends.
  bool call(std::size_t rank) {
    if (!coordinator.enter(rank)) return false;
    ++inside;
    while (!has_ended[rank]) std::this_thread::yield();
    --inside;
    coordinator.leave(rank);
    return true;
  }
  void finish(std::size_t rank) {
    if (const std::function<void()> last = coordinator.finish(rank, [this, rank] { end(rank); })) last();
  }
  void wake(std::size_t rank) { coordinator.abort_when_safe(rank, end_of(rank)); }

  gpu::AbortCoordinator coordinator;
  std::deque<std::atomic<bool>> has_ended;
  std::atomic<bool> is_known = true;  // the library has told the addresses of its communicators
  std::atomic<int> inside = 0, graphs = 0, ended = 0, ended_again = 0;
  std::atomic<bool> is_freed = false, freed_in_use = false;
};

}  // namespace

TEST_CASE("another thread ends a rank that is inside of a call, and the rank that is kept ends when all have finished",
          "[gpu]") {
  Library library(2);
  bool has_called = false, calls_again = true, freed_before = true;
  std::thread inside([&] {
    has_called = library.call(0);
    calls_again = library.call(0);
    freed_before = library.is_freed;
    library.finish(0);
  });
  while (library.inside == 0) std::this_thread::yield();
  library.wake(0);
  CHECK_FALSE(library.has_ended[0]);  // rank 1 may be inside of a call, too
  library.finish(1);
  inside.join();
  CHECK(has_called);
  CHECK_FALSE(calls_again);
  CHECK_FALSE(freed_before);
  CHECK(library.is_freed);
  CHECK_FALSE(library.freed_in_use);
  CHECK(library.coordinator.time_in_call(0).count() == 0);
  library.finish(0);
  library.finish(1);
  CHECK(library.ended_again == 0);
}

TEST_CASE("no other thread ends the last rank of a communicator, wherever its own thread is", "[gpu]") {
  for (const bool at_once : {false, true}) {
    Library library(3);
    for (const std::size_t rank : {0U, 1U, 2U}) REQUIRE(library.coordinator.enter(rank));
    for (const std::size_t rank : {0U, 1U, 2U}) {
      library.wake(rank);
      if (at_once) library.coordinator.abort_stuck_call(rank, library.end_of(rank));
    }
    // Where a call lasts too long there may be no rank that has finished.
    CHECK(library.ended == (at_once ? 2 : 0));
    for (const std::size_t rank : {0U, 1U, 2U}) library.coordinator.leave(rank);
    for (const std::size_t rank : {0U, 1U, 2U}) {
      CHECK_FALSE(library.is_freed);
      library.finish(rank);
    }
    CHECK(library.ended == 3);
    CHECK(library.ended_again == 0);
  }
}

TEST_CASE("calls of all ranks that do not return end one after another", "[gpu]") {
  // As where GPUs cannot reach one another: the last rank ends when the threads of the others have finished.
  Library library(3);
  std::vector<std::thread> threads;
  for (const std::size_t rank : {0U, 1U, 2U}) {
    threads.emplace_back([&, rank] {
      library.call(rank);
      library.finish(rank);
    });
  }
  while (library.inside < 3) std::this_thread::yield();
  while (library.ended < 3) {
    library.coordinator.retry_aborts();
    for (const std::size_t rank : {0U, 1U, 2U}) library.coordinator.abort_stuck_call(rank, library.end_of(rank));
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(library.is_freed);
  CHECK(library.ended_again == 0);
}

TEST_CASE("communicators that share threads end without waiting for one another", "[gpu]") {
  // Two ranks each; thread 0 finishes `first` before `second`, thread 1 the other way round.
  Library first(2), second(2);
  std::vector<std::function<void()>> ends;
  ends.push_back(first.coordinator.finish(0, [&] { first.end(0); }));
  ends.push_back(second.coordinator.finish(1, [&] { second.end(1); }));
  CHECK(!ends[0]);
  CHECK(!ends[1]);
  ends.push_back(second.coordinator.finish(0, [&] { second.end(0); }));
  ends.push_back(first.coordinator.finish(1, [&] { first.end(1); }));
  CHECK(first.ended == 1);  // the kept ranks end when they are told to
  CHECK(second.ended == 1);
  for (const std::function<void()>& end : ends) {
    if (end) end();
  }
  CHECK(first.is_freed);
  CHECK(second.is_freed);
}

TEST_CASE("a rank that has finished lets all ranks that were woken before end", "[gpu]") {
  // As where the GPU that fails is none of the communicator's: the first one that finishes is released by another one.
  Library library(3);
  std::vector<std::thread> threads;
  for (const std::size_t rank : {0U, 1U}) {
    threads.emplace_back([&, rank] {
      library.call(rank);
      library.finish(rank);
    });
  }
  while (library.inside < 2) std::this_thread::yield();
  for (const std::size_t rank : {0U, 1U, 2U}) library.wake(rank);
  CHECK(library.ended == 0);
  library.finish(2);
  for (std::thread& thread : threads) thread.join();
  CHECK(library.is_freed);
  CHECK_FALSE(library.freed_in_use);
}

TEST_CASE("a rank whose communicator is not known yet ends later", "[gpu]") {
  Library library(2);
  library.is_known = false;
  std::thread inside([&] {
    library.call(0);
    library.finish(0);
  });
  while (library.inside == 0) std::this_thread::yield();
  library.finish(1);
  library.wake(0);
  library.coordinator.abort_stuck_call(0, library.end_of(0));
  CHECK(library.ended == 0);
  library.is_known = true;
  library.coordinator.retry_aborts();
  inside.join();
  CHECK(library.ended == 2);
  CHECK_FALSE(library.freed_in_use);
}

TEST_CASE("each rank ends once, and the last one when no thread makes a call or has a graph", "[gpu]") {
  for (int round = 0; round < 50; ++round) {
    constexpr std::size_t ranks = 4;
    Library library(ranks);
    library.graphs = ranks;
    std::vector<std::thread> threads;
    for (std::size_t me = 0; me < ranks; ++me) {
      threads.emplace_back([&, me] {
        // Rank 0 has failed: it makes no calls, and wakes the others.
        for (std::size_t other = 1; me == 0 && other < ranks; ++other) library.wake(other);
        while (me > 0 && library.coordinator.enter(me)) {
          ++library.inside;
          std::this_thread::yield();
          --library.inside;
          library.coordinator.leave(me);
        }
        --library.graphs;
        library.finish(me);
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(library.ended == ranks);
    CHECK(library.ended_again == 0);
    CHECK(library.is_freed);
    CHECK_FALSE(library.freed_in_use);
  }
}

TEST_CASE("a periodic checker sees a call that lasts, and checks no more when its registration has ended", "[gpu]") {
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.02");
  gpu::PeriodicChecker checker;
  gpu::AbortCoordinator coordinator(1);
  std::atomic<bool> is_late = false;
  std::atomic<int> looks = 0;
  {
    const auto registration = checker.add([&] {
      ++looks;
      if (coordinator.time_in_call(0) > 20ms) is_late = true;
    });
    while (looks < 5) std::this_thread::sleep_for(1ms);
    CHECK_FALSE(is_late);
    REQUIRE(coordinator.enter(0));
    while (!is_late) std::this_thread::sleep_for(1ms);
    coordinator.leave(0);
  }
  const int before = looks;
  std::this_thread::sleep_for(20ms);
  CHECK(looks == before);
}

}  // namespace pmaptrain::test
