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
#include "tests/words.h"

namespace pmaptrain {
namespace {

using namespace std::chrono_literals;
using gpu::Collective;
using gpu::Stream;
using test::contains;

// What each of the platform's devices, on a thread of its own, failed with; empty where it did not. `action` ends it.
using WithDevice = std::function<void(std::unique_ptr<gpu::Device>, int)>;
std::vector<std::string> on_threads_ending(gpu::Platform& platform, const WithDevice& action) {
  std::vector<std::string> failures(static_cast<std::size_t>(platform.devices()));
  std::vector<std::thread> threads;
  for (int number = 0; number < platform.devices(); ++number) {
    threads.emplace_back([&, number] {
      try {
        action(platform.open(number), number);
      } catch (const Error& error) {
        failures[static_cast<std::size_t>(number)] = error.diagnostics().front().message;
      }
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
    std::string failure;
    try {
      action(*device, number);
    } catch (const Error& error) {
      failure = error.diagnostics().front().message;
      has_failed = true;
    }
    all.arrive_and_wait();
    if (has_failed) device->abort("another device has failed");
    all.arrive_and_wait();
    device.reset();
    if (!failure.empty()) fail_running(failure);
  });
}

// Some elements on each of `devices` devices, which have all allocated them, and what one gets of them.
template <class T>
struct Exchange {
  Exchange(gpu::Device& on, int devices, const std::vector<T>& values, std::size_t results)
      : device(on),
        host(device.pinned(std::max(values.size(), results) * sizeof(T))),
        from(device.allocate(values.size() * sizeof(T))),
        to(device.allocate(results * sizeof(T))),
        bytes(values.size() * sizeof(T)),
        result_bytes(results * sizeof(T)) {
    std::memcpy(host, values.data(), bytes);
    device.copy(Stream::compute, from, host, {bytes});
    device.order(Stream::compute, Stream::communicate);
    device.barrier(devices);
  }
  std::vector<T> result() {
    device.order(Stream::communicate, Stream::compute);
    device.copy(Stream::compute, host, to, {result_bytes});
    device.wait(device.record_event(Stream::compute));
    const T* const values = reinterpret_cast<const T*>(host);
    return {values, values + result_bytes / sizeof(T)};
  }

  gpu::Device& device;
  std::byte* host;
  std::byte* from;
  std::byte* to;
  std::size_t bytes, result_bytes;
};

constexpr std::array all{0, 1, 2, 3};

TEST_CASE("all_gather has the ranks' values by rank, in place too", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 4});
  std::vector<std::vector<std::int32_t>> gathered(4), odd(4);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const auto group = device.create_communicator(0, all);
    Exchange<std::int32_t> one(device, 4, {number, 10 * number}, 8);
    device.collective(Stream::communicate, group, Collective::all_gather, DType::i32, one.to, one.from, one.bytes);
    gathered[static_cast<std::size_t>(number)] = one.result();

    const auto some = device.create_communicator(1, number % 2 == 0 ? std::array{2, 0} : std::array{1, 3});
    Exchange<std::int32_t> two(device, 4, {number, number}, 2);
    const std::size_t mine = number == 2 || number == 1 ? 0 : 4;
    device.collective(Stream::communicate, some, Collective::all_gather, DType::i32, two.from, two.from + mine, 4);
    two.to = two.from;
    odd[static_cast<std::size_t>(number)] = two.result();
  });
  CHECK(failures == std::vector<std::string>(4));
  for (const auto& values : gathered) CHECK(values == std::vector<std::int32_t>{0, 0, 1, 10, 2, 20, 3, 30});
  CHECK(odd == std::vector<std::vector<std::int32_t>>{{2, 0}, {1, 3}, {2, 0}, {1, 3}});
}

TEST_CASE("an exchange gives each rank its part of every rank's value, by rank", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 4});
  std::vector<std::vector<std::int32_t>> found(4);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const auto group = device.create_communicator(0, all);
    const std::int32_t n = 10 * number;
    Exchange<std::int32_t> parts(device, 4, {n, n + 1, n + 2, n + 3}, 4);
    device.collective(Stream::communicate, group, Collective::exchange, DType::i32, parts.to, parts.from, 4);
    found[static_cast<std::size_t>(number)] = parts.result();
  });
  CHECK(failures == std::vector<std::string>(4));
  for (std::int32_t i = 0; i < 4; ++i) {
    CHECK(found[static_cast<std::size_t>(i)] == std::vector<std::int32_t>{i, 10 + i, 20 + i, 30 + i});
  }
  CHECK(test::bytes_between(*platform) == std::size_t{4} * 3 * 4);
}

template <class T>
std::vector<std::vector<T>> summed(DType dtype, const std::vector<T>& by_rank, unsigned seed) {
  const auto platform = test::make_emulated({.devices = 4, .seed = seed});
  std::vector<std::vector<T>> sums(4);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const auto group = device.create_communicator(0, all);
    Exchange<T> exchange(device, 4, {by_rank[static_cast<std::size_t>(number)]}, 1);
    exchange.to = exchange.from;
    device.collective(Stream::communicate, group, Collective::all_reduce_sum, dtype, exchange.to, exchange.from,
                      sizeof(T));
    sums[static_cast<std::size_t>(number)] = exchange.result();
  });
  CHECK(failures == std::vector<std::string>(4));
  return sums;
}

TEST_CASE("all_reduce_sum gives every rank the same sum, in an order that the seed chooses", "[emulated_gpu]") {
  std::set<float> found;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto sums = summed<float>(DType::f32, {1e8F, 1, -1e8F, 2}, seed);
    for (const auto& sum : sums) CHECK(sum == sums.front());
    found.insert(sums.front().front());
  }
  CHECK(found.size() > 1);
  CHECK(summed<double>(DType::f64, {1, 2, 3, 4}, 1).back() == std::vector<double>{10});
  CHECK(summed<std::uint32_t>(DType::u32, {0xffffffffU, 2, 3, 4}, 1).back() == std::vector<std::uint32_t>{8});
  CHECK(summed<std::int64_t>(DType::i64, {std::int64_t{1} << 40, 2, 3, -4}, 1).back() ==
        std::vector<std::int64_t>{(std::int64_t{1} << 40) + 1});
}

TEST_CASE("reduce_scatter_sum gives each rank its part of the sum, in an order that the seed chooses",
          "[emulated_gpu]") {
  std::set<float> found;
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto platform = test::make_emulated({.devices = 4, .seed = seed});
    std::vector<std::vector<float>> sums(4);
    const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
      const auto group = device.create_communicator(0, all);
      const auto n = static_cast<float>(number);
      constexpr std::array uneven{1e8F, 1.0F, -1e8F, 2.0F};
      Exchange<float> parts(device, 4, {uneven[static_cast<std::size_t>(number)], n, 10 * n, 100 * n}, 1);
      device.collective(Stream::communicate, group, Collective::reduce_scatter_sum, DType::f32, parts.to, parts.from,
                        sizeof(float));
      sums[static_cast<std::size_t>(number)] = parts.result();
    });
    CHECK(failures == std::vector<std::string>(4));
    found.insert(sums[0].front());
    CHECK(sums[1] == std::vector<float>{6});
    CHECK(sums[2] == std::vector<float>{60});
    CHECK(sums[3] == std::vector<float>{600});
    CHECK(test::bytes_between(*platform) == std::size_t{4} * 3 * sizeof(float));
  }
  CHECK(found.size() > 1);
}

TEST_CASE("a collective orders what one rank did before it and another does after it", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2});
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const std::array both{0, 1};
    const auto group = device.create_communicator(0, both);
    Exchange<float> exchange(device, 2, {1}, 2);
    const auto gather = [&](Stream stream) {
      device.collective(stream, group, Collective::all_gather, DType::f32, exchange.to, exchange.from, 4);
    };
    gather(Stream::communicate);
    if (number == 0) device.copy(Stream::compute, exchange.from, exchange.host, {4});  // while it is sent
  });
  CHECK(
      contains(failures[0],
               "no order between all_gather of 4 bytes of f32 in communicator {0,1} on stream communicate of device 0, "
               "which reads, and copy of 4 bytes on stream compute of device 0, which writes"));
  CHECK(failures[1].empty());
}

// What each rank is told where they call what `call` does, in a platform where ranks wait but a moment.
std::vector<std::string> told(const test::Emulation& options,
                              const std::function<void(gpu::Device&, gpu::Communicator, Exchange<float>&, int)>& call) {
  const auto platform = test::make_emulated(options);
  return on_threads(*platform, [&](gpu::Device& device, int number) {
    const auto group = device.create_communicator(0, std::span(all).first(static_cast<std::size_t>(options.devices)));
    Exchange<float> exchange(device, options.devices, std::vector<float>(8), 32);
    call(device, group, exchange, number);
  });
}

TEST_CASE("ranks that make different calls are told both", "[emulated_gpu]") {
  const auto check = [](Collective kind, DType dtype, std::size_t bytes, const std::string& other) {
    const auto failures = told({.devices = 2}, [&](gpu::Device& device, gpu::Communicator group,
                                                   Exchange<float>& exchange, int number) {
      device.collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from, 8);
      if (number == 0) {
        device.collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from,
                          8);
      } else {
        device.collective(Stream::communicate, group, kind, dtype, exchange.to, exchange.from, bytes);
      }
    });
    for (const std::string& failure : failures) {
      CHECK(contains(failure, "the ranks of communicator {0,1} make different calls, as number 2: rank "));
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
  const auto platform = test::make_emulated({.devices = 3, .patience = 300ms, .lost_rank = 2, .lost_from = 1});
  std::array<std::atomic<gpu::Device*>, 3> open{};
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    open[static_cast<std::size_t>(number)] = &device;
    const auto group = device.create_communicator(0, std::span(all).first(3));
    Exchange<float> exchange(device, 3, {1}, 3);
    const auto gather = [&] {
      device.collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from, 4);
    };
    gather();
    try {
      gather();
    } catch (const Error&) {
      if (number == 0) open[2].load()->abort("rank 0 has given up");
      throw;
    }
  });
  for (const int rank : {0, 1}) {
    CHECK(contains(failures[static_cast<std::size_t>(rank)],
                   "rank 2 did not come to all_gather 2 of communicator {0,1,2}"));
  }
  CHECK(failures[2] == "rank 0 has given up");
  CHECK(std::chrono::steady_clock::now() - start < 60s);
}

TEST_CASE("ranks that take communicators in different orders are told where the others wait", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2, .patience = 200ms});
  const std::array both{0, 1};
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    std::array groups{device.create_communicator(0, both), device.create_communicator(1, both)};
    if (number == 1) std::swap(groups[0], groups[1]);
    Exchange<float> exchange(device, 2, {1}, 2);
    for (const auto group : groups) {
      device.collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from, 4);
    }
  });
  const std::string text = failures[0] + failures[1];
  CHECK(contains(text, " did not come to all_gather 1 of communicator {0,1}; rank "));
  CHECK(contains(text, " waits in all_gather 1 of communicator {0,1}"));
}

TEST_CASE("an abort wakes a rank that waits, and nothing runs on its device any more", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2});
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    if (number == 1) return;
    const std::jthread watchdog([&] {
      std::this_thread::sleep_for(20ms);
      device.abort("it took too long");
    });
    const std::array both{0, 1};
    try {
      device.create_communicator(0, both);
    } catch (const Error&) {
      device.allocate(1);
    }
  });
  CHECK(failures == std::vector<std::string>{"it took too long", ""});
}

TEST_CASE("a communicator has each rank once, and the device that joins among them", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2, .patience = 50ms});
  const auto device = platform->open(0);
  const auto refused = [&](const std::vector<int>& ranks) {
    return test::refusal([&] { device->create_communicator(0, ranks); }, ExitStatus::failed);
  };
  CHECK(contains(refused({0, 1, 0}), "device 0 cannot join communicator {0,1,0}: rank 0 is in it twice"));
  CHECK(contains(refused({1}), "device 0 cannot join communicator {1}: it is not one of the ranks"));
  CHECK(contains(refused({0, 2}), "device 0 cannot join communicator {0,2}: there is no device 2"));
  CHECK(contains(refused({0, 1}), "rank 1 did not come to join 1 of communicator {0,1}"));
  const auto alone = device->create_communicator(0, std::array{0});
  std::byte* const memory = device->allocate(8);
  device->collective(Stream::communicate, alone, Collective::all_reduce_sum, DType::f32, memory, memory, 8);
  CHECK(contains(test::refusal(
                     [&] {
                       device->collective(Stream::communicate, {alone.number + 1}, Collective::all_gather, DType::f32,
                                          memory, memory, 8);
                     },
                     ExitStatus::failed),
                 "device 0 has not joined a communicator 1"));
}

TEST_CASE("a collective is captured, and its ranks meet when they replay it", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 2});
  std::vector<std::vector<float>> sums(2);
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    const std::array both{0, 1};
    const auto group = device.create_communicator(0, both);
    Exchange<float> exchange(device, 2, {1.0F + static_cast<float>(number)}, 1);
    const auto graph = device.capture([&] {
      device.order(Stream::compute, Stream::communicate);
      device.collective(Stream::communicate, group, Collective::all_reduce_sum, DType::f32, exchange.from,
                        exchange.from, 4);
      device.order(Stream::communicate, Stream::compute);
    });
    device.barrier(2);
    for (int i = 0; i < 3; ++i) device.replay(graph);
    exchange.to = exchange.from;
    sums[static_cast<std::size_t>(number)] = exchange.result();
  });
  CHECK(failures == std::vector<std::string>(2));
  CHECK(sums == std::vector<std::vector<float>>{{12}, {12}});
}

TEST_CASE("a call that may wait for other devices needs an order on the host with their collectives",
          "[emulated_gpu]") {
  using Calls = std::function<void(gpu::Device&)>;
  const std::pair<std::string, Calls> alone[] = {
      {"capture()", [](gpu::Device& device) { device.capture([] {}); }},
      {"allocate()", [](gpu::Device& device) { device.allocate(1); }},
      {"pinned()", [](gpu::Device& device) { device.pinned(1); }},
      {"create_communicator()", [](gpu::Device& device) { device.create_communicator(1, std::array{0}); }},
  };
  for (const auto& [name, call] : alone) {
    // Around the call of device 0 there are two collectives; the other one makes these alone.
    const auto text = [&, &call = call](const Calls& before, const Calls& after) {
      const auto failures = told({.devices = 2, .patience = 200ms}, [&](gpu::Device& device, gpu::Communicator group,
                                                                        Exchange<float>& exchange, int number) {
        const auto gather = [&] {
          device.collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from,
                            4);
        };
        gather();
        before(device);
        if (number == 0) call(device);
        after(device);
        gather();
      });
      return failures[0] + failures[1];
    };
    const Calls nothing = [](gpu::Device&) {}, meet = [](gpu::Device&device) { device.barrier(2); },
                wait = [](gpu::Device&device) { device.wait(device.record_event(Stream::communicate)); };
    INFO(name);
    CHECK(text(meet, meet).empty());
    CHECK(text(wait, meet).empty());
    for (const std::string& wrong : {text(nothing, nothing), text(nothing, meet), text(meet, nothing)}) {
      INFO(wrong);
      CHECK(contains(wrong, "no order on the host between "));
      CHECK(contains(wrong, name + " of device 0"));
      CHECK(contains(wrong, "all_gather of 4 bytes of f32 in communicator {0,1} on stream communicate of device 1"));
    }
  }
}

TEST_CASE("a device ends when the host knows that all collectives are done, and none follows", "[emulated_gpu]") {
  const auto misuse_of = [](bool waits, bool gathers_later) {
    const auto platform = test::make_emulated({.devices = 3, .patience = 200ms});
    std::barrier step(3);
    const auto failures = on_threads_ending(*platform, [&](std::unique_ptr<gpu::Device> device, int number) {
      const std::array others{1, 2};
      const auto group = number == 0 ? gpu::Communicator{} : device->create_communicator(0, others);
      Exchange<float> exchange(*device, 3, {1}, 2);
      const auto gather = [&] {
        device->collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from,
                           4);
        if (waits) device->wait(device->record_event(Stream::communicate));
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
      contains(misuse_of(false, false), "device 0 ends while all_gather of 4 bytes of f32 in communicator {1,2} on "));
  CHECK(
      contains(misuse_of(true, true), "device 0 has ended before all_gather of 4 bytes of f32 in communicator {1,2}"));
}

TEST_CASE("no module begins, ends or runs collectives while another one may have some under way", "[emulated_gpu]") {
  const auto told_by = [](bool waits, const std::function<void(gpu::Platform&)>& other) {
    const auto platform = test::make_emulated({.devices = 2, .patience = 200ms});
    std::barrier step(2);
    std::string failure;
    on_threads_ending(*platform, [&](std::unique_ptr<gpu::Device> device, int number) {
      const auto group = device->create_communicator(0, std::array{0, 1});
      Exchange<float> exchange(*device, 2, {1}, 2);
      device->collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from, 4);
      if (waits) device->wait(device->record_event(Stream::communicate));
      step.arrive_and_wait();
      try {
        if (number == 0) other(*platform);
      } catch (const Error& error) {
        failure = error.diagnostics().front().message;
      }
      step.arrive_and_wait();
    });
    return failure + test::take_misuse(*platform);
  };
  const auto begins = [](gpu::Platform& platform) { platform.open(0, 1)->allocate(16); };
  const auto ends = [](gpu::Platform& platform) { platform.open(0, 1); };
  CHECK(told_by(true, begins).empty());
  CHECK(told_by(true, ends).empty());
  const std::string gather = "all_gather of 4 bytes of f32 in communicator {0,1} on stream communicate of device ";
  CHECK(contains(told_by(false, begins), "allocate() of device 0 may wait for " + gather));
  CHECK(contains(told_by(false, ends), "device 0 ends while " + gather));
}

TEST_CASE("devices of several processes join by an identity that one of them has made, and meet by themselves",
          "[emulated_gpu]") {
  const auto platforms = test::make_emulated(2, {.devices = 1, .patience = 200ms});
  const gpu::CommunicatorId id = platforms[0]->new_communicator_id(), other = platforms[1]->new_communicator_id();
  CHECK(id != other);
  const std::array both{0, 1};
  std::array<bool, 2> have_gathered{};
  const auto failures_with = [&](const std::array<const gpu::CommunicatorId*, 2>& ids) {
    std::array<std::string, 2> failures;
    std::vector<std::thread> threads;
    for (std::size_t process = 0; process < 2; ++process) {
      threads.emplace_back([&, process] {
        try {
          const int rank = static_cast<int>(process);
          const auto device = platforms[process]->open(0, 7, {rank, 1});
          const auto group = device->create_communicator(0, both, ids[process]);
          Exchange<float> exchange(*device, 1, {static_cast<float>(rank + 1)}, 2);
          device->collective(Stream::communicate, group, Collective::all_gather, DType::f32, exchange.to, exchange.from,
                             4);
          device->wait(device->record_event(Stream::communicate));
          have_gathered[process] = true;
        } catch (const Error& error) {
          failures[process] = error.diagnostics().front().message;
        }
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

TEST_CASE("devices meet as often as they call for it, and a device that does not come is named", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.devices = 3, .patience = 200ms});
  std::array<std::atomic<int>, 2> rounds{};
  const auto failures = on_threads(*platform, [&](gpu::Device& device, int number) {
    if (number == 2) return;
    for (int round = 1; round <= 50; ++round) {
      ++rounds[static_cast<std::size_t>(number)];
      device.barrier(2);
      if (rounds[0] < round || rounds[1] < round) fail_running("they have not met");
    }
    if (number == 0) device.barrier(3);
  });
  CHECK(contains(failures[0], "ranks 1, 2 did not come to meet 1 of communicator {0,1,2}"));
  CHECK(failures[1] + failures[2] == "");
}

}  // namespace
}  // namespace pmaptrain
