// Collectives of emulated GPUs: what they compute, and what ranks that do not meet are told.
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/ops/kernels.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

using namespace std::chrono_literals;
using gpu::Collective;
using gpu::Stream;
using test::contains, test::message_of_error;

// What each of the platform's devices, on a thread of its own, failed with; empty where it did not. `action` ends it.
using WithDevice = std::function<void(std::unique_ptr<gpu::Device>, int)>;
std::vector<std::string> on_threads_ending(gpu::Platform& platform, const WithDevice& action) {
  std::vector<std::string> failures(static_cast<std::size_t>(platform.devices()));
  std::vector<std::thread> threads;
  for (int number = 0; number < platform.devices(); ++number) {
    threads.emplace_back([&, number] {
      failures[static_cast<std::size_t>(number)] = message_of_error([&] { action(platform.open(number), number); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failures;
}

// They end when all have done that.
std::vector<std::string> on_threads(gpu::Platform& platform, const std::function<void(gpu::Device&, int)>& action) {
  std::barrier all(platform.devices());
  std::atomic<bool> has_failed = false;
  return on_threads_ending(platform, [&](std::unique_ptr<gpu::Device> device, int number) {
    const std::string failure = message_of_error([&] { action(*device, number); });
    if (!failure.empty()) has_failed = true;
    all.arrive_and_wait();
    if (has_failed) device->abort("another device has failed");
    all.arrive_and_wait();
    device.reset();
    if (!failure.empty()) fail_running(failure);
  });
}

// One of `devices` devices, which have all allocated memory: a rank of a communicator, unless `ranks` is empty, with
// elements for it and for what it gets.
template <class T>
struct Rank {
  Rank(gpu::Device& on, int devices, std::span<const int> ranks, const std::vector<T>& values, std::size_t results,
       const gpu::CommunicatorId* id = nullptr)
      : device(on),
        group(ranks.empty() ? gpu::Communicator{} : device.create_communicator(ranks, id)),
        host(device.pinned(std::max(values.size(), results) * sizeof(T))),
        from(device.allocate(values.size() * sizeof(T))),
        to(device.allocate(results * sizeof(T))),
        result_bytes(results * sizeof(T)) {
    std::memcpy(host, values.data(), values.size() * sizeof(T));
    device.copy(Stream::compute, from, host, {values.size() * sizeof(T)});
    device.order(Stream::compute, Stream::communicate);
    device.barrier(devices);
  }
  void run(Collective kind, std::size_t bytes = sizeof(T), DType dtype = test::dtype_of<T>()) {
    device.collective(Stream::communicate, group, kind, dtype, to, from, bytes);
  }
  void gather() { run(Collective::all_gather); }
  void wait() { device.wait(device.record_event(Stream::communicate)); }
  std::vector<T> result() {
    device.order(Stream::communicate, Stream::compute);
    device.copy(Stream::compute, host, to, {result_bytes});
    device.wait(device.record_event(Stream::compute));
    const T* const values = reinterpret_cast<const T*>(host);
    return {values, values + result_bytes / sizeof(T)};
  }

  gpu::Device& device;
  gpu::Communicator group;
  std::byte* host;
  std::byte* from;
  std::byte* to;
  std::size_t result_bytes;
};

constexpr std::array all{0, 1, 2, 3};
std::span<const int> first_ranks(int devices) { return std::span(all).first(static_cast<std::size_t>(devices)); }

template <class T>
using ByRank = std::vector<std::vector<T>>;

// What each of four ranks has after a collective of all with these values, which gives each `results` elements.
template <class T>
ByRank<T> after(Collective kind, std::size_t elements, const ByRank<T>& values, std::size_t results,
                unsigned seed = 0) {
  const auto platform = test::make_emulated({.devices = 4, .seed = seed});
  ByRank<T> found(4);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const auto at = static_cast<std::size_t>(number);
    Rank<T> rank(device, 4, all, values[at], results);
    const bool in_place = kind == Collective::all_reduce_sum;
    if (in_place) rank.to = rank.from;
    rank.run(kind, elements * sizeof(T));
    found[at] = rank.result();
  });
  CHECK(failures == std::vector<std::string>(4));
  const std::size_t parts = kind == Collective::all_reduce_sum ? 2 : 4;  // of a ring, twice a quarter
  CHECK(test::calls_of(*platform).bytes_between == parts * 3 * elements * sizeof(T));
  return found;
}

// What each rank of all devices is told where they do this.
std::vector<std::string> told(const test::Emulation& options, const std::function<void(Rank<float>&, int)>& action) {
  const auto platform = test::make_emulated(options);
  return on_threads(*platform, [&](gpu::Device& device, int number) {
    std::vector<float> values(8, 1.0F + static_cast<float>(number));
    Rank<float> rank(device, options.devices, first_ranks(options.devices), values, 32);
    action(rank, number);
  });
}

TEST_CASE("all_gather has the ranks' values by rank, in place too", "[emulated_gpu]") {
  const auto gathered = after<std::int32_t>(Collective::all_gather, 2, {{0, 0}, {1, 10}, {2, 20}, {3, 30}}, 8);
  for (const auto& values : gathered) CHECK(values == std::vector<std::int32_t>{0, 0, 1, 10, 2, 20, 3, 30});

  const auto platform = test::make_emulated({.devices = 4});
  ByRank<std::int32_t> odd(4);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    Rank<std::int32_t> two(device, 4, number % 2 == 0 ? std::array{2, 0} : std::array{1, 3}, {number, number}, 2);
    two.to = two.from;
    if (number == 0 || number == 3) two.from += 4;
    two.gather();
    odd[static_cast<std::size_t>(number)] = two.result();
  });
  CHECK(failures == std::vector<std::string>(4));
  CHECK(odd == ByRank<std::int32_t>{{2, 0}, {1, 3}, {2, 0}, {1, 3}});
}

TEST_CASE("an exchange gives each rank its part of every rank's value, by rank", "[emulated_gpu]") {
  CHECK(after<std::int32_t>(Collective::exchange, 1,
                            {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}, {30, 31, 32, 33}}, 4) ==
        ByRank<std::int32_t>{{0, 10, 20, 30}, {1, 11, 21, 31}, {2, 12, 22, 32}, {3, 13, 23, 33}});
}

TEST_CASE("sums of all ranks are added in an order that the seed chooses, and each rank has the sum or its part",
          "[emulated_gpu]") {
  std::set<float> reduced, scattered;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto sums = after<float>(Collective::all_reduce_sum, 1, {{1e8F}, {1}, {-1e8F}, {2}}, 1, seed);
    CHECK(sums == ByRank<float>(4, sums.front()));
    reduced.insert(sums.front().front());
    const auto parts = after<float>(Collective::reduce_scatter_sum, 1,
                                    {{1e8F, 0, 0, 0}, {1, 1, 10, 100}, {-1e8F, 2, 20, 200}, {2, 3, 30, 300}}, 1, seed);
    scattered.insert(parts.front().front());
    CHECK(ByRank<float>(parts.begin() + 1, parts.end()) == ByRank<float>{{6}, {60}, {600}});
  }
  CHECK(reduced.size() > 1);
  CHECK(scattered.size() > 1);
}

TEST_CASE("a collective orders what one rank did before it and another does after it", "[emulated_gpu]") {
  const auto failures = told({.devices = 2}, [](Rank<float>& rank, int number) {
    rank.gather();
    if (number == 0) rank.device.copy(Stream::compute, rank.from, rank.host, {4});  // while it is sent
  });
  CHECK(contains(
      failures[0],
      "no order between all_gather of 4 bytes of f32 in communicator {0, 1} on stream communicate of device 0, "
      "which reads, and copy of 4 bytes on stream compute of device 0, which writes"));
  CHECK(failures[1].empty());
}

TEST_CASE("ranks that make different calls are told both", "[emulated_gpu]") {
  const auto check = [](Collective kind, DType dtype, std::size_t bytes, const std::string& other) {
    const auto failures = told({.devices = 2}, [&](Rank<float>& rank, int number) {
      rank.run(Collective::all_gather, 8);
      if (number == 0) rank.run(Collective::all_gather, 8);
      if (number == 1) rank.run(kind, bytes, dtype);
    });
    for (const std::string& failure : failures) {
      CHECK(contains(failure, "the ranks of communicator {0, 1} make different calls, as number 2: rank "));
      CHECK(contains(failure, "rank 0 all_gather of 8 bytes of f32"));
      CHECK(contains(failure, "rank 1 " + other));
    }
  };
  check(Collective::all_reduce_sum, DType::f32, 8, "all_reduce_sum of 8 bytes of f32");
  check(Collective::all_gather, DType::i32, 8, "all_gather of 8 bytes of i32");
  check(Collective::all_gather, DType::f32, 12, "all_gather of 12 bytes of f32");
}

TEST_CASE("a rank that is lost is named, and abort() ends its wait", "[emulated_gpu]") {
  const auto start = std::chrono::steady_clock::now();
  std::array<std::atomic<gpu::Device*>, 3> open{};
  const auto failures =
      told({.devices = 3, .patience = 300ms, .lost_rank = 2, .lost_from = 1}, [&](Rank<float>& rank, int number) {
        open[static_cast<std::size_t>(number)] = &rank.device;
        rank.gather();
        try {
          rank.gather();
        } catch (const Error&) {
          if (number == 0) open[2].load()->abort("rank 0 has given up");
          throw;
        }
      });
  for (const std::size_t rank : {0U, 1U}) {
    CHECK(contains(failures[rank], "rank 2 did not come to all_gather 2 of communicator {0, 1, 2}"));
  }
  CHECK(failures[2] == "rank 0 has given up");
  CHECK(std::chrono::steady_clock::now() - start < 60s);
}

TEST_CASE("ranks that take communicators in different orders are told where the others wait", "[emulated_gpu]") {
  const auto failures = told({.devices = 2, .patience = 200ms}, [&](Rank<float>& rank, int number) {
    std::array groups{rank.group, rank.device.create_communicator(first_ranks(2))};
    rank.device.barrier(2);
    if (number == 1) std::swap(groups[0], groups[1]);
    for (const auto group : groups) {
      rank.group = group;
      rank.gather();
    }
  });
  const std::string text = failures[0] + failures[1];
  CHECK(contains(text, " did not come to all_gather 1 of communicator {0, 1}; rank "));
  CHECK(contains(text, " waits in all_gather 1 of communicator {0, 1}"));
}

TEST_CASE("an abort wakes a rank that waits, and nothing runs on its device any more", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2});
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    if (number == 1) return;
    const std::jthread watchdog([&] {
      std::this_thread::sleep_for(20ms);
      device.abort("it took too long");
    });
    try {
      device.create_communicator(first_ranks(2));
    } catch (const Error&) {
      device.allocate(1);
    }
  });
  CHECK(failures == std::vector<std::string>{"it took too long", ""});
}

TEST_CASE("a communicator has each rank once, and the device that joins among them", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2, .patience = 50ms});
  const auto device = platform->open(0);
  for (const auto& [ranks, why] : std::vector<std::pair<std::vector<int>, std::string>>{
           {{0, 1, 0}, "device 0 cannot join communicator {0, 1, 0}: rank 0 is in it twice"},
           {{1}, "device 0 cannot join communicator {1}: it is not one of the ranks"},
           {{0, 2}, "device 0 cannot join communicator {0, 2}: there is no device 2"},
           {{0, 1}, "rank 1 did not come to join 1 of communicator {0, 1}"}}) {
    CHECK(contains(message_of_error([&, &ranks = ranks] { device->create_communicator(ranks); }), why));
  }
  Rank<float> alone(*device, 1, first_ranks(1), {1}, 1);
  alone.to = alone.from;
  alone.run(Collective::all_reduce_sum);
  ++alone.group.number;
  CHECK(contains(message_of_error([&] { alone.gather(); }), "device 0 has not joined a communicator 1"));
}

TEST_CASE("a collective is captured, and its ranks meet when they replay it", "[emulated_gpu]") {
  ByRank<float> sums(2);
  const auto failures = told({.devices = 2}, [&](Rank<float>& rank, int number) {
    rank.to = rank.from;
    const auto graph = rank.device.capture([&] {
      rank.device.order(Stream::compute, Stream::communicate);
      rank.run(Collective::all_reduce_sum);
      rank.device.order(Stream::communicate, Stream::compute);
    });
    rank.device.barrier(2);
    for (int i = 0; i < 3; ++i) rank.device.replay(graph);
    rank.result_bytes = sizeof(float);
    sums[static_cast<std::size_t>(number)] = rank.result();
  });
  CHECK(failures == std::vector<std::string>(2));
  CHECK(sums == ByRank<float>{{12}, {12}});
}

TEST_CASE("a call that may wait for other devices needs an order on the host with their collectives",
          "[emulated_gpu]") {
  using Calls = std::function<void(Rank<float>&)>;
  const std::pair<std::string, Calls> alone[] = {
      {"capture()", [](Rank<float>& rank) { rank.device.capture([] {}); }},
      {"allocate()", [](Rank<float>& rank) { rank.device.allocate(1); }},
      {"pinned()", [](Rank<float>& rank) { rank.device.pinned(1); }},
      {"create_communicator()", [](Rank<float>& rank) { rank.device.create_communicator(std::array{0}); }},
  };
  for (const auto& [name, call] : alone) {
    // Around the call of device 0 there are two collectives; the other one makes these alone.
    const auto text = [&, &call = call](const Calls& before, const Calls& behind) {
      const auto failures = told({.devices = 2, .patience = 200ms}, [&](Rank<float>& rank, int number) {
        rank.gather();
        before(rank);
        if (number == 0) call(rank);
        behind(rank);
        rank.gather();
      });
      return failures[0] + failures[1];
    };
    const Calls nothing = [](Rank<float>&) {}, meet = [](Rank<float>&rank) { rank.device.barrier(2); },
                wait = [](Rank<float>&rank) { rank.wait(); };
    INFO(name);
    CHECK(text(meet, meet).empty());
    CHECK(text(wait, meet).empty());
    for (const std::string& wrong : {text(nothing, nothing), text(nothing, meet), text(meet, nothing)}) {
      CHECK(contains(wrong, "no order on the host between "));
      CHECK(contains(wrong, name + " of device 0"));
      CHECK(contains(wrong, "all_gather of 4 bytes of f32 in communicator {0, 1} on stream communicate of device 1"));
    }
  }
}

TEST_CASE("a device ends when the host knows that all collectives are done, and none follows", "[emulated_gpu]") {
  const auto misuse_of = [](bool waits, bool gathers_later) {
    const auto platform = test::make_emulated({.devices = 3, .patience = 200ms});
    std::barrier step(3);
    const auto failures = on_threads_ending(*platform, [&](std::unique_ptr<gpu::Device> device, int number) {
      const std::array others{1, 2};
      Rank<float> rank(*device, 3, std::span(others).first(number == 0 ? 0 : 2), {1}, 2);
      const auto gather = [&] {
        rank.gather();
        if (waits) rank.wait();
      };
      if (number > 0) gather();
      step.arrive_and_wait();
      if (number == 0) device.reset();
      step.arrive_and_wait();
      if (number > 0 && gathers_later) gather();
    });
    return test::take_misuse(*platform) + failures[1];
  };
  CHECK(misuse_of(true, false).empty());
  CHECK(
      contains(misuse_of(false, false), "device 0 ends while all_gather of 4 bytes of f32 in communicator {1, 2} on "));
  CHECK(
      contains(misuse_of(true, true), "device 0 has ended before all_gather of 4 bytes of f32 in communicator {1, 2}"));
}

TEST_CASE("no module begins, ends or runs collectives while another one may have some under way", "[emulated_gpu]") {
  const auto told_by = [](bool waits, const std::function<void(gpu::Platform&)>& other) {
    const auto platform = test::make_emulated({.devices = 2, .patience = 200ms});
    std::barrier step(2);
    std::string failure;
    on_threads_ending(*platform, [&](std::unique_ptr<gpu::Device> device, int number) {
      Rank<float> rank(*device, 2, first_ranks(2), {1}, 2);
      rank.gather();
      if (waits) rank.wait();
      step.arrive_and_wait();
      if (number == 0) failure = message_of_error([&] { other(*platform); });
      step.arrive_and_wait();
    });
    return failure + test::take_misuse(*platform);
  };
  const auto begins = [](gpu::Platform& platform) { platform.open(0, 1)->allocate(16); };
  const auto ends = [](gpu::Platform& platform) { platform.open(0, 1); };
  CHECK(told_by(true, begins).empty());
  CHECK(told_by(true, ends).empty());
  const std::string gather = "all_gather of 4 bytes of f32 in communicator {0, 1} on stream communicate of device ";
  CHECK(contains(told_by(false, begins), "allocate() of device 0 may wait for " + gather));
  CHECK(contains(told_by(false, ends), "device 0 ends while " + gather));
}

TEST_CASE("devices of several processes join by an identity that one of them has made, and meet by themselves",
          "[emulated_gpu]") {
  const auto platforms = test::make_emulated(2, {.devices = 1, .patience = 200ms});
  const gpu::CommunicatorId id = platforms[0]->new_communicator_id(), other = platforms[1]->new_communicator_id();
  CHECK(id != other);
  std::array<bool, 2> have_gathered{};
  const auto failures_with = [&](const std::array<const gpu::CommunicatorId*, 2>& ids) {
    std::array<std::string, 2> failures;
    std::vector<std::thread> threads;
    for (std::size_t process = 0; process < 2; ++process) {
      threads.emplace_back([&, process] {
        failures[process] = message_of_error([&] {
          const int number = static_cast<int>(process);
          const auto device = platforms[process]->open(0, 7, {number, 1});
          Rank<float> rank(*device, 1, first_ranks(2), {1}, 2, ids[process]);
          rank.gather();
          rank.wait();
          have_gathered[process] = true;
        });
      });
    }
    for (std::thread& thread : threads) thread.join();
    return failures[0] + failures[1];
  };
  CHECK(failures_with({&id, &id}) == "");
  CHECK(have_gathered == std::array{true, true});
  CHECK(contains(failures_with({&id, &other}), "rank 1 did not come to join"));
  gpu::CommunicatorId unknown{};
  CHECK(contains(failures_with({&unknown, &unknown}), "no process has made this identity of a communicator"));
}

// tests/gpu/device_calls.cpp has devices that meet.
TEST_CASE("a device that does not come to a barrier is named", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 3, .patience = 200ms});
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    if (number == 0) device.barrier(3);
  });
  CHECK(contains(failures[0], "ranks 1, 2 did not come to meet 1 of communicator {0, 1, 2}"));
  CHECK(failures[1] + failures[2] == "");
}

}  // namespace
}  // namespace pmaptrain
