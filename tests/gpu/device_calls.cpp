// The calls of a device (core/runtime/gpu/device.h) besides launches: right programs, on emulated GPUs and on CUDA's.
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "tests/arrays.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/emulated_gpu/library.h"
#include "tests/gpu/gpus.h"

namespace pmaptrain::test {
namespace {

using gpu::Stream;

// A device with memory of its own, which begins as what a test gives it.
struct Board {
  explicit Board(const Bytes& values)
      : platform(open_gpus(1)),
        device(platform->open(0)),
        size(values.size()),
        host(device->pinned(size)),
        memory(device->allocate(size)) {
    std::memcpy(host, values.data(), size);
    device->copy(Stream::compute, memory, host, {size});
  }
  Bytes values() {
    device->copy(Stream::compute, host, memory, {size});
    device->wait(device->record_event(Stream::compute));
    return {host, host + size};
  }

  std::unique_ptr<gpu::Platform> platform;
  std::unique_ptr<gpu::Device> device;
  std::size_t size;
  std::byte *host, *memory;
};

}  // namespace

DEVICE_TEST_CASE("a device reduces arrays in their order, with the bits of the collectives' references",
                 "[gpu][kernels]") {
  using Reduction = gpu::Device::Reduction;
  constexpr std::size_t elements = 1000;
  for (const Reduction reduce : {Reduction::sum, Reduction::max, Reduction::min}) {
    for (const DType dtype : number_types) {
      if (dtype == DType::bf16 && reduce == Reduction::sum) continue;  // sums of bf16 are added up in f32
      const std::size_t bytes = elements * size_of(dtype), pitch = bytes + 256 - bytes % 256;
      const gpu::SpacedArrays spaced{4, 2, pitch, 3 * pitch};  // two rows of two; there is a gap between them
      Bytes values(5 * pitch + bytes);
      std::vector<const std::byte*> arrays;
      for (std::int64_t i = 0; i < spaced.count; ++i) {
        const Bytes some = random_values(dtype, elements, static_cast<unsigned>(i));
        arrays.push_back(std::copy(some.begin(), some.end(), values.data() + spaced.offset(i)) - some.size());
      }
      const std::vector<TreeNode> tree{{1, 2}, {2, 1}, {1, 1}};  // (a + ((b + c) + d)), where a is of two leaves
      const Bytes expected = emulation::reduce_arrays("expected", reduce, dtype, bytes, arrays, tree);
      Board board(values);
      const gpu::Addends four{board.memory + 5 * pitch, board.memory, elements, spaced};
      board.device->reduce(Stream::compute, reduce, dtype, std::span(&four, 1), tree);
      const Bytes all = board.values();
      const Bytes found(all.end() - static_cast<std::ptrdiff_t>(bytes), all.end());
      INFO(to_string(dtype) << ", reduce " << static_cast<int>(reduce));
      CHECK(difference({{dtype, {static_cast<std::int64_t>(elements)}, {}}}, {found}, {expected}).empty());
    }
  }
}

DEVICE_TEST_CASE("a device reduces groups of arrays of different sizes at once", "[gpu][kernels]") {
  // (1, 2) + (3, 4), 300 sums in the place of their first addends, and none.
  constexpr std::int64_t long_arrays = 300;
  std::vector<float> begin{1, 2, 3, 4, 0, 0};
  for (int i = 0; i < 2 * long_arrays; ++i) begin.push_back(static_cast<float>(i));
  Board board(bytes_of(begin));
  const auto at = [&](std::size_t element) { return board.memory + element * sizeof(float); };
  const std::array groups{gpu::Addends{at(4), at(0), 2, {2, 2, 2 * sizeof(float)}},
                          gpu::Addends{at(6), at(6), long_arrays, {2, 2, long_arrays * sizeof(float)}},
                          gpu::Addends{at(6), at(6), 0, {2, 2, 0}}};
  board.device->reduce(Stream::compute, gpu::Device::Reduction::sum, DType::f32, groups, std::array{TreeNode{2, 1}});
  std::vector<float> expected = begin;
  expected[4] = 4, expected[5] = 6;
  for (std::size_t i = 6; i < 6 + long_arrays; ++i) expected[i] += begin[i + long_arrays];
  CHECK((board.values() == bytes_of(expected)));
}

DEVICE_TEST_CASE("a device copies rows from one pitch to another", "[gpu][kernels]") {
  Bytes values(512);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::byte>(i % 251);
  Board board(values);
  board.device->copy(Stream::compute, board.memory + 256, board.memory, {5, 4, 7, 16});
  Bytes expected = values;
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t i = 0; i < 5; ++i) expected[256 + 7 * row + i] = values[16 * row + i];
  }
  CHECK((board.values() == expected));
}

DEVICE_TEST_CASE("a device replays a graph that forks and joins as often as it is asked", "[gpu][one]") {
  // Beside a sum of three numbers, the last of which it is written over, a copy of the first one.
  const std::vector<float> begin{1, 2, 4, 0};
  Board board(bytes_of(begin));
  gpu::Device& device = *board.device;
  const gpu::Graph graph = device.capture([&] {
    device.order(Stream::compute, Stream::copy);
    device.copy(Stream::copy, board.memory + 12, board.memory, {4});
    device.reduce(Stream::compute, gpu::Device::Reduction::sum, DType::f32,
                  std::array{gpu::Addends{board.memory + 8, board.memory, 1, {3, 3, 4}}}, std::array{TreeNode{3, 1}});
    device.order(Stream::copy, Stream::compute);
  });
  for (int i = 0; i < 3; ++i) device.replay(graph);
  CHECK((board.values() == bytes_of<float>({1, 2, 13, 1})));
}

DEVICE_TEST_CASE("the threads of devices meet on the host, and an abort ends the wait for one that does not come",
                 "[gpu]") {
  const auto platform = open_gpus(2);
  std::array<std::atomic<int>, 2> rounds{};
  std::array<std::string, 2> failures;
  std::atomic<gpu::Device*> alone = nullptr;
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < 2; ++me) {
    threads.emplace_back([&, me] {
      const auto device = platform->open(static_cast<int>(me));
      if (me == 0) alone = device.get();
      try {
        for (int round = 1; round <= 20; ++round) {
          ++rounds[me];
          device->barrier(2);
          if (rounds[0] < round || rounds[1] < round) failures[me] = "they have not met";
        }
        if (me == 0) device->barrier(2);
        alone.load()->abort("GPU 1 has failed");
      } catch (const Error& error) {
        failures[me] += error.diagnostics().front().message;
      }
      // Until then device 0 may be aborted.
      while (me == 0 && rounds[1] != 21) std::this_thread::yield();
      rounds[me] = 21;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures[0] == "GPU 1 has failed");
  CHECK(failures[1] == "");
}

}  // namespace pmaptrain::test
