// Several threads end the ranks of a communicator while some of them are inside of a call that does not return.
#include "core/runtime/gpu/ending.h"

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "core/runtime/gpu/lookout.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"

namespace pmaptrain::test {

using namespace std::chrono_literals;

TEST_CASE("another thread ends a rank that is inside of a call, and the last rank waits until it has left", "[cuda]") {
  gpu::Ending ending(2);
  std::atomic<bool> is_woken = false, has_left = false, left_before_the_last = false;
  REQUIRE(ending.enter(0));
  std::thread inside([&] {
    while (!is_woken) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);
    has_left = true;
    ending.leave(0);
  });
  ending.wake(0, [&] { is_woken = true; });
  CHECK(is_woken);
  ending.finish(1, [&] { left_before_the_last = has_left.load(); });
  CHECK(left_before_the_last);
  inside.join();
  CHECK_FALSE(ending.enter(0));
  CHECK(ending.lasted(0).count() == 0);
  ending.finish(0, [] { FAIL_CHECK("a rank ends twice"); });
}

TEST_CASE("the last rank of a communicator ends on its own thread, unless that is inside of a call", "[cuda]") {
  for (const bool is_inside : {false, true}) {
    gpu::Ending ending(3);
    int ended = 0;
    if (is_inside) REQUIRE(ending.enter(2));
    for (const std::size_t rank : {0U, 1U, 2U}) ending.wake(rank, [&] { ++ended; });
    CHECK(ended == (is_inside ? 3 : 2));
    CHECK(ending.is_closed(2));
    if (is_inside) ending.leave(2);
    ending.finish(2, [&] { ++ended; });
    CHECK(ended == 3);
  }
}

TEST_CASE("each rank ends once, and the last one after all calls, whoever ends it", "[cuda]") {
  for (int round = 0; round < 50; ++round) {
    constexpr int ranks = 4;
    gpu::Ending ending(ranks);
    std::atomic<int> inside = 0, ended = 0, inside_at_the_last = 0;
    std::atomic<bool> are_told = false;
    const auto end = [&] {
      if (++ended == ranks) inside_at_the_last = inside.load();
    };
    std::vector<std::thread> threads;
    for (std::size_t me = 0; me < ranks; ++me) {
      threads.emplace_back([&, me] {
        // Rank 0 has failed: it makes no calls, and ends when the others are told.
        while (me == 0 && !are_told) std::this_thread::yield();
        while (me > 0 && ending.enter(me)) {
          ++inside;
          std::this_thread::yield();
          --inside;
          ending.leave(me);
        }
        ending.finish(me, end);
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100 * (round % 3)));
    for (std::size_t other = 1; other < ranks; ++other) ending.wake(other, end);
    are_told = true;
    for (std::thread& thread : threads) thread.join();
    CHECK(ended == ranks);
    CHECK(inside_at_the_last == 0);
  }
}

TEST_CASE("a lookout sees a call that lasts, and looks no more when its post has ended", "[cuda]") {
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.02");
  gpu::Lookout lookout;
  gpu::Ending ending(1);
  std::atomic<bool> is_late = false;
  std::atomic<int> looks = 0;
  {
    const auto post = lookout.add([&] {
      ++looks;
      if (ending.lasted(0) > 20ms) is_late = true;
    });
    while (looks < 5) std::this_thread::sleep_for(1ms);
    CHECK_FALSE(is_late);
    REQUIRE(ending.enter(0));
    while (!is_late) std::this_thread::sleep_for(1ms);
    ending.leave(0);
  }
  const int before = looks;
  std::this_thread::sleep_for(20ms);
  CHECK(looks == before);
}

}  // namespace pmaptrain::test
