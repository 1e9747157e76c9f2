#include "core/runtime/gpu/barrier.h"

#include <array>
#include <thread>

#include "core/base/error.h"
#include "core/runtime/gpu/environment.h"
#include "tests/catch.h"
#include "tests/cuda/module.h"

namespace pmaptrain::test {
namespace {

// The error of a rank that comes alone.
std::string error_of_waiting(gpu::Barrier& barrier, std::size_t position, const gpu::Abort& abort) {
  try {
    barrier.arrive_and_wait(position, abort, "all_gather 7", [] {});
  } catch (const Error& error) {
    // Not by CHECK: several threads may be here.
    return error.status() == ExitStatus::failed ? error.diagnostics().front().message : "another status";
  }
  return "nothing";
}

}  // namespace

TEST_CASE("devices meet as often as they come, and each sees what the others left", "[gpu]") {
  constexpr std::size_t ranks = 4;
  gpu::Barrier barrier({0, 1, 2, 3});
  const gpu::Abort abort;
  std::array<int, ranks> words{};
  std::array<int, ranks> wrong{};
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < ranks; ++me) {
    threads.emplace_back([&, me] {
      for (int round = 1; round <= 200; ++round) {
        barrier.arrive_and_wait(me, abort, "a round", [&] { words[me] = round; });
        for (const int word : words) wrong[me] += word == round ? 0 : 1;
        barrier.arrive_and_wait(me, abort, "the end of a round", [] {});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::array<int, ranks>{});
}

TEST_CASE("a rank that does not come is named", "[gpu]") {
  const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", "0.1");
  gpu::Barrier barrier({4, 5, 6});
  const gpu::Abort abort;
  std::string first;
  std::thread other([&] { first = error_of_waiting(barrier, 0, abort); });
  const std::string second = error_of_waiting(barrier, 2, abort);
  other.join();
  CHECK(first == "GPU: rank 5 did not come to all_gather 7 within 0.1 s");
  CHECK(second == first);
}

TEST_CASE("who waits for other ranks is ended by an abort, with its first reason", "[gpu]") {
  gpu::Barrier barrier({0, 1});
  gpu::Abort abort;
  std::string reason;
  std::thread waiting([&] { reason = error_of_waiting(barrier, 0, abort); });
  abort.set("GPU 1 has failed");
  abort.set("a later reason");
  waiting.join();
  CHECK(reason == "GPU 1 has failed");
  CHECK(abort.is_set());
}

TEST_CASE("devices share what is of their module and ranks, until the last of them is gone", "[gpu]") {
  gpu::SharedMap<int> shared;
  int made = 0;
  const auto get = [&](int module, const std::vector<int>& ranks) {
    return shared.get(module, ranks, [&] { return std::make_shared<int>(++made); });
  };
  auto first = get(1, {0, 1});
  CHECK(get(1, {0, 1}) == first);
  CHECK(made == 1);
  // Two modules have the same GPUs: their threads must not meet one another.
  for (const auto& other : {get(2, {0, 1}), get(1, {1, 0})}) CHECK(other != first);
  CHECK(made == 3);
  first.reset();
  CHECK(*get(1, {0, 1}) == 4);
}

TEST_CASE("the ranks of a communicator are told in braces", "[gpu]") {
  CHECK(gpu::ranks_text(std::array{0, 2, 7}) == "{0, 2, 7}");
}

TEST_CASE("PMAPTRAIN_GPU_TIMEOUT is a number of seconds above zero; without it, it is 10 minutes", "[gpu]") {
  const auto seconds = [](const char* text) {
    const Variable timeout("PMAPTRAIN_GPU_TIMEOUT", text);
    return gpu::gpu_timeout().count();
  };
  CHECK(seconds("2.5") == 2.5);
  CHECK(seconds("") == 600);
  for (const char* const text : {"0", "-1", "soon", "nan", "10 s"}) {
    CHECK_THROWS_WITH(seconds(text), Catch::Contains("PMAPTRAIN_GPU_TIMEOUT is a number of seconds above 0, not '" +
                                                     std::string(text) + "'"));
  }
}

TEST_CASE("PMAPTRAIN_GPU_GRAPHS is off or not set", "[gpu]") {
  const auto wanted = [](const char* text) {
    const Variable graphs("PMAPTRAIN_GPU_GRAPHS", text);
    return gpu::uses_graphs();
  };
  CHECK(wanted(""));
  CHECK_FALSE(wanted("off"));
  CHECK_THROWS_WITH(wanted("on"), Catch::Contains("PMAPTRAIN_GPU_GRAPHS is off, not 'on'"));
}

}  // namespace pmaptrain::test
