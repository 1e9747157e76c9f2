// The emulation of GPUs itself: right programs pass, and each mistake is found with its words.
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/emulated_gpu/library.h"
#include "tests/emulated_gpu/platform.h"
#include "tests/words.h"

namespace pmaptrain {
namespace {

using gpu::Device;
using gpu::Stream;
using test::contains;

const GpuKernel generated{{GpuGenerated{}}, 0};

template <class T>
T* as(std::byte* address) {
  return reinterpret_cast<T*>(address);
}

// Arrays of four f32, or matrices [2,2], on a device, and what a test does with them.
struct Bench {
  static constexpr std::size_t bytes = 16;

  explicit Bench(std::shared_ptr<gpu::Platform> of = test::make_emulated({}), int number = 0)
      : platform(std::move(of)), device(platform->open(number)), staging(device->pinned(bytes)), add(prepare_add()) {
    const std::vector<Type> types(2, test::type(DType::f32, {2, 2}));
    const GpuRequest request{types, {types.data(), 1}, 1, {true, true}};
    multiply = device->prepare(ops::Matmul{}, request, make_gpu_kernel(ops::Matmul{}, request));
    for (std::byte*& workspace : workspaces) workspace = device->allocate(multiply.workspace);
  }

  gpu::PreparedKernel prepare_add() {
    const std::vector<Type> types(2, test::type(DType::f32, {4}));
    return device->prepare(ops::Add{}, {types, {types.data(), 1}, 1, {true, true}}, generated);
  }
  std::byte* array(float value) {
    std::byte* const address = device->allocate(bytes);
    for (int i = 0; i < 4; ++i) as<float>(staging)[i] = value;
    device->copy(Stream::compute, address, staging, {bytes});
    device->wait(device->record_event(Stream::compute));
    return address;
  }
  std::vector<float> values(const std::byte* address) {
    device->copy(Stream::compute, staging, address, {bytes});
    device->wait(device->record_event(Stream::compute));
    return {as<float>(staging), as<float>(staging) + 4};
  }
  void sum(Stream stream, std::byte* to, const std::byte* a, const std::byte* b) {
    launch(stream, add, to, a, b, {{{a, bytes}, {b, bytes}}, {{to, bytes}}});
  }
  void product(Stream stream, std::byte* to, const std::byte* a, const std::byte* b) {
    launch(stream, multiply, to, a, b, {{{a, bytes}, {b, bytes}}, {{to, bytes}}});
  }
  void launch(Stream stream, gpu::PreparedKernel kernel, std::byte* to, const std::byte* a, const std::byte* b,
              const gpu::Accesses& accesses) {
    const std::array operands{a, b};
    std::byte* const workspace = workspaces[static_cast<std::size_t>(stream)];
    device->launch(stream, kernel, {operands, {&to, 1}, nullptr, workspace}, accesses);
  }

  std::shared_ptr<gpu::Platform> platform;
  std::unique_ptr<Device> device;
  std::byte* staging;
  gpu::PreparedKernel add, multiply;
  std::array<std::byte*, gpu::stream_count> workspaces{};  // kernels of two streams may run at once
};

std::string failure(const std::function<void()>& action) { return test::refusal(action, ExitStatus::failed); }
bool fails(const std::function<void()>& action, const std::string& words) { return contains(failure(action), words); }

TEST_CASE("memory of an emulated device begins without values, and ends where it was said to", "[emulated_gpu]") {
  Bench bench(test::make_emulated({.devices = 2, .memory = 3072}), 1);
  std::byte* const array = bench.device->allocate(Bench::bytes);
  CHECK(reinterpret_cast<std::uintptr_t>(array) % 256 == 0);
  for (const float value : bench.values(array)) CHECK(value != value);
  CHECK(fails([&] { bench.device->copy(Stream::compute, bench.staging, array, {20}); },
              "copy of 20 bytes on stream compute of device 1 uses 4 bytes beyond the end of an allocation of 16"));
  const auto refused = test::refusal([&] { bench.device->allocate(2600); }, ExitStatus::resource);
  CHECK(contains(refused, "out of memory on device 1: 2.5 KiB were asked for, and 1.2 KiB of 3.0 KiB are free"));
}

TEST_CASE("memory of a closed emulated device is free again", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.memory = 1024});
  for (int i = 0; i < 3; ++i) platform->open(0)->allocate(1000);
  const auto device = platform->open(0);
  CHECK(fails([&] { platform->open(0); }, "device 0 is open already"));
}

TEST_CASE("two modules open the same emulated device, each with memory of its own", "[emulated_gpu]") {
  const auto platform = test::make_emulated({.memory = 4096});
  const auto one = platform->open(0, 1), two = platform->open(0, 2);
  CHECK(fails([&] { platform->open(0, 2); }, "device 0 is open already"));
  std::byte* const a = one->allocate(2048);
  CHECK(contains(test::refusal([&] { two->allocate(2304); }, ExitStatus::resource), "2.0 KiB of 4.0 KiB are free"));
  std::byte* const b = two->allocate(1024);
  CHECK(fails([&] { two->copy(Stream::compute, b, a, {16}); }, "uses memory of device 0"));
  one->abort("one module has failed");
  CHECK_NOTHROW(two->allocate(256));
}

TEST_CASE("two streams without an order race, and order() makes one", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const b = bench.array(2), *const c = bench.array(0);
  bench.sum(Stream::compute, c, a, b);
  // Reads beside reads need none.
  std::byte* const d = bench.array(0);
  bench.sum(Stream::compute, c, a, b);
  bench.sum(Stream::copy, d, a, b);
  CHECK(fails([&] { bench.sum(Stream::copy, d, c, b); },
              "no order between 'add' on stream compute of device 0, which writes, and 'add' on stream copy of "
              "device 0, which reads: both use 16 bytes of one allocation | Device::order() orders"));
  CHECK(fails([&] { bench.sum(Stream::copy, a, d, d); },
              "'add' on stream compute of device 0, which reads, and 'add' on stream copy of device 0, which writes"));
  bench.device->order(Stream::compute, Stream::copy);
  bench.sum(Stream::copy, d, c, b);
  bench.sum(Stream::copy, a, d, d);
  CHECK(fails([&] { bench.sum(Stream::compute, c, a, b); }, "no order between"));
  bench.device->wait(bench.device->record_event(Stream::copy));  // and what the host calls for after it
  CHECK(bench.values(a) == std::vector<float>(4, 10));
}

TEST_CASE("a launch that declares less than it uses is refused", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const b = bench.array(2), *const c = bench.array(0);
  const auto refuses = [&](std::byte* to, const gpu::Accesses& declared, const std::string& words) {
    CHECK(fails([&] { bench.launch(Stream::compute, bench.add, to, a, b, declared); }, words));
  };
  const std::string launch = "'add' on stream compute of device 0: ",
                    outside = " lies outside of what the launch declares to ";
  refuses(c, {{{a, 16}, {b, 12}}, {{c, 16}}}, launch + "operand 1 (16 bytes)" + outside + "read");
  refuses(c, {{{a, 16}, {b, 16}}, {{a, 16}}}, launch + "result 0 (16 bytes)" + outside + "write");
  bench.launch(Stream::compute, bench.add, c, a, b, {{{a, 8}, {b, 16}, {a + 8, 8}}, {{c, 16}}});
  refuses(a + 4, {{{a, 16}, {b, 16}}, {{a, 20}}}, "result 0 and operand 0 overlap");
  const std::array<const std::byte*, 2> operands{a, b};
  const gpu::LaunchArguments one{std::span(operands).first(1), {&c, 1}, nullptr, bench.workspaces[0]};
  CHECK(fails([&] { bench.device->launch(Stream::compute, bench.add, one, {}); },
              "it has 1 operand and 1 result, where the kernel takes 2 and 1"));
  const gpu::LaunchArguments without_workspace{operands, {&c, 1}};
  CHECK(fails([&] { bench.device->launch(Stream::compute, bench.multiply, without_workspace, {}); },
              "it lacks a workspace"));
}

TEST_CASE("kernels of two streams that share a workspace race", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const b = bench.array(0), *const c = bench.array(0);
  bench.product(Stream::compute, b, a, a);
  bench.product(Stream::copy, c, a, a);
  bench.workspaces[static_cast<std::size_t>(Stream::copy)] = bench.workspaces[0];
  CHECK(fails([&] { bench.product(Stream::copy, c, a, a); }, "which writes: both use 512 bytes of one allocation"));
}

TEST_CASE("an emulated device uses memory of its own, and pinned memory in copies only", "[emulated_gpu]") {
  const std::shared_ptr<gpu::Platform> platform = test::make_emulated({.devices = 2});
  Bench bench(platform), other(platform, 1);
  std::byte* const a = bench.array(1);
  std::byte* const foreign = other.array(2);
  CHECK(fails([&] { bench.sum(Stream::compute, a, a, foreign); },
              "'add' on stream compute of device 0 uses memory of device 1"));
  CHECK(fails([&] { bench.device->copy(Stream::copy, a, foreign, {16}); },
              "copy of 16 bytes on stream copy of device 0 uses memory of device 1"));
  CHECK(fails([&] { bench.sum(Stream::compute, bench.staging, a, a); }, "uses pinned memory of the host"));
  std::array<float, 4> local{};
  CHECK(fails([&] { bench.device->copy(Stream::copy, a, reinterpret_cast<std::byte*>(local.data()), {16}); },
              "uses memory that no device has allocated"));
  bench.device->copy(Stream::compute, a, other.staging, {16});  // what one device has pinned, all may copy
  bench.device->wait(bench.device->record_event(Stream::compute));
}

TEST_CASE("memory that a device has pinned is not freed while another one copies it", "[emulated_gpu]") {
  for (const bool waits : {false, true}) {
    Bench bench(test::make_emulated({.devices = 2}));
    std::byte* const a = bench.array(1);
    {
      const Bench other(bench.platform, 1);
      bench.device->copy(Stream::copy, a, other.staging, {16});
      if (waits) bench.device->wait(bench.device->record_event(Stream::copy));
    }
    CHECK(
        test::take_misuse(*bench.platform) ==
        (waits ? "" : "pinned memory of device 1 is freed while copy of 16 bytes on stream copy of device 0 uses it"));
  }
}

TEST_CASE("an emulated device belongs to one thread", "[emulated_gpu]") {
  const auto platform = test::make_emulated({});
  const auto device = platform->open(0);
  std::string found;
  std::thread([&] { found = failure([&] { device->allocate(1); }); }).join();
  CHECK(contains(found, "device 0 is used on another thread than the one that opened it"));
}

TEST_CASE("the host has what was copied to it when it has waited, and not before", "[emulated_gpu]") {
  Bench bench;
  std::byte* const a = bench.array(7);
  float* const host = as<float>(bench.staging);
  bench.device->copy(Stream::copy, bench.staging, a, {16});
  CHECK(host[0] != host[0]);
  const gpu::Event event = bench.device->record_event(Stream::copy);
  while (!bench.device->poll(event)) continue;
  CHECK(host[0] == 7);

  bench.device->copy(Stream::copy, a, bench.staging, {16});
  host[1] = 8;
  CHECK(fails([&] { bench.device->wait(bench.device->record_event(Stream::copy)); },
              "the host changed pinned memory before copy of 16 bytes on stream copy of device 0 had read it"));
}

// tests/gpu/device_calls.cpp has right ones.
TEST_CASE("a copy of rows that overlap, or that it reads itself, is refused", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const b = bench.array(2);
  CHECK(fails([&] { bench.device->copy(Stream::compute, b, a, {.width = 4, .height = 2, .to_pitch = 8}); },
              "rows of 4 bytes lie 0 apart, so they overlap"));
  CHECK(fails([&] { bench.device->copy(Stream::compute, b, b + 4, {8}); }, "writes what it reads"));
}

TEST_CASE("a graph runs as often as it is replayed, with what it is given then", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const b = bench.array(2), *const c = bench.array(0);
  const gpu::Graph graph = bench.device->capture([&] {
    bench.device->order(Stream::compute, Stream::copy);
    bench.sum(Stream::copy, c, a, b);
    bench.sum(Stream::compute, b, a, b);
    bench.device->order(Stream::copy, Stream::compute);
    bench.sum(Stream::compute, a, a, a);
  });
  CHECK(bench.values(a) == std::vector<float>(4, 1));
  CHECK(fails([&] { bench.device->replay(graph); }, "no order between 'add' on stream copy"));
}

TEST_CASE("what a graph forks is ordered within it, and a replay after another", "[emulated_gpu]") {
  Bench bench;
  std::byte *const a = bench.array(1), *const c = bench.array(0), *const d = bench.array(0);
  const gpu::Graph graph = bench.device->capture([&] {
    bench.device->order(Stream::compute, Stream::copy);
    bench.sum(Stream::copy, c, a, a);
    bench.sum(Stream::compute, d, a, a);
    bench.device->order(Stream::copy, Stream::compute);
    bench.sum(Stream::compute, a, c, d);
  });
  for (int i = 0; i < 3; ++i) bench.device->replay(graph);
  CHECK(bench.values(a) == std::vector<float>(4, 64));
  // The stream copy itself is no part of the graph.
  bench.device->replay(graph);
  CHECK(fails([&] { bench.device->copy(Stream::copy, bench.staging, a, {16}); }, "no order between"));
}

TEST_CASE("a capture refuses what a graph cannot have", "[emulated_gpu]") {
  Bench bench;
  Device& device = *bench.device;
  std::byte* const a = bench.array(1);
  const gpu::Event event = device.record_event(Stream::compute);
  const gpu::Graph empty = device.capture([] {});
  const auto refused = [&](const std::function<void()>& record) { return failure([&] { device.capture(record); }); };
  const std::pair<const char*, std::function<void()>> calls[] = {
      {"allocate", [&] { device.allocate(1); }},
      {"pinned", [&] { device.pinned(1); }},
      {"prepare", [&] { bench.prepare_add(); }},
      {"poll", [&] { device.poll(event); }},
      {"record_event", [&] { device.record_event(Stream::compute); }},
      {"replay", [&] { device.replay(empty); }},
      {"capture", [&] { device.capture([] {}); }}};
  for (const auto& [name, call] : calls) {
    CHECK(contains(refused(call), std::string(name) + "() on device 0 while a graph is captured"));
  }
  CHECK(contains(
      refused([&] { device.copy(Stream::copy, a, bench.staging, {16}); }),
      "copy of 16 bytes on stream copy of device 0 is captured before order() has begun the stream from compute"));
  CHECK(contains(refused([&] { device.order(Stream::copy, Stream::compute); }),
                 "order() after stream copy of device 0, which is not part of the capture"));
  CHECK(contains(refused([&] {
                   device.order(Stream::compute, Stream::copy);
                   device.copy(Stream::copy, a, bench.staging, {16});
                 }),
                 "stream copy of device 0 is not joined to compute at the end of a capture | order(copy, compute)"));
  device.allocate(1);  // a failed capture has ended
}

TEST_CASE("bf16 has no sums, as these are rounded from f32 once", "[emulated_gpu]") {
  const std::uint16_t zero = 0;
  const std::byte* const array = reinterpret_cast<const std::byte*>(&zero);
  CHECK(fails(
      [&] {
        emulation::reduce_arrays("a sum", Device::Reduction::sum, DType::bf16, 2, {&array, 1});
      },
      "a sum: no sum of bf16"));
}

}  // namespace
}  // namespace pmaptrain
