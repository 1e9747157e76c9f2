// The host's CUDA dialect itself: right kernels give one result in every order, and mistakes are found.
#include "core/kernel/simt.h"

#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;

namespace {

using simt::Order;

extern "C" __global__ void sum_of_block(float* sums, const float* x, bool forgets) {
  SHARED(float, lanes, 64);
  lanes[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  for (unsigned half = 32; half > 0; half /= 2) {
    if (!forgets) __syncthreads();
    if (threadIdx.x < half) lanes[threadIdx.x] += lanes[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = lanes[0];
}

std::vector<float> sums(Order order, bool forgets) {
  std::vector<float> x(5 * 64), found(5, -1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 7;
  simt::launch({.grid = {5}, .threads = 64, .order = order}, [&] { sum_of_block(found.data(), x.data(), forgets); });
  return found;
}

bool equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

TEST_CASE("a kernel with its barriers gives the same sums in every order of threads and blocks", "[emulated_gpu]") {
  const auto forward = sums(Order::forward, false);
  CHECK(forward[0] == forward[0]);
  CHECK(equal(sums(Order::reverse, false), forward));
  CHECK(equal(sums(Order::shuffled, false), forward));
}

TEST_CASE("a kernel that forgets a barrier gives other sums in another order", "[emulated_gpu]") {
  const auto right = sums(Order::forward, false);
  const bool found = !equal(sums(Order::forward, true), right) || !equal(sums(Order::shuffled, true), right);
  CHECK(found);
}

TEST_CASE("threads of a block that wait at different barriers are an error", "[emulated_gpu]") {
  const auto divergent = [] {
    if (threadIdx.x < 3) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 8}, divergent),
                    "thread 3 waits at another barrier than others of its block");
  const auto leaves = [] {
    if (threadIdx.x != 2) __syncthreads();
  };
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 8}, leaves),
                    "thread 2 has ended and others of its block wait at a barrier");
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 1025}, leaves), "a block has 1 to 1024 threads");
}

TEST_CASE("shared memory begins with NaN in every block and is limited", "[emulated_gpu]") {
  int numbers = 0;
  simt::launch({.grid = {3}, .threads = 4}, [&] {
    SHARED(float, values, 4);
    if (values[threadIdx.x] == values[threadIdx.x]) ++numbers;
    values[threadIdx.x] = 1;
  });
  CHECK(numbers == 0);
  const auto large = [] {
    SHARED(double, values, 10000);
    values[0] = 0;
  };
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 1}, large),
                    "a block asks for more shared memory than it may have");
}

TEST_CASE("the lanes of a warp exchange values without the other warps of their block", "[emulated_gpu]") {
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    std::vector<std::uint32_t> found(96);
    simt::launch({.grid = {}, .threads = 96, .order = order}, [&] {
      const unsigned me = threadIdx.x;
      std::uint32_t value = me;
      // Each warp makes another number of exchanges.
      for (unsigned round = 0; round < 3 + me / 32; ++round) value = PMAPTRAIN_EXCHANGE(value)[(me + 1) % 32][0];
      __syncthreads();
      found[me] = value;
    });
    for (unsigned me = 0; me < 96; ++me) CHECK(found[me] == me / 32 * 32 + (me + 3 + me / 32) % 32);
  }
}

TEST_CASE("lanes that do not exchange with the others of their warp are an error", "[emulated_gpu]") {
  const auto stays = [] {
    if (threadIdx.x != 5) static_cast<void>(PMAPTRAIN_EXCHANGE(0));
    if (threadIdx.x == 5) __syncthreads();
  };
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 32}, stays),
                    "thread 0 waits for lanes of its warp that do not come");
  const auto elsewhere = [] {
    if (threadIdx.x < 5) {
      static_cast<void>(PMAPTRAIN_EXCHANGE(0));
    } else {
      static_cast<void>(PMAPTRAIN_EXCHANGE(1));
    }
  };
  CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 32}, elsewhere),
                    "thread 0 is at another exchange than others of its warp");
  // Another warp goes on meanwhile, and ends.
  const auto returns = [] {
    if (threadIdx.x < 32) {
      static_cast<void>(PMAPTRAIN_EXCHANGE(0));
      return;
    }
    __syncthreads();
  };
  const auto one_stays = [] {
    if (threadIdx.x != 40) static_cast<void>(PMAPTRAIN_EXCHANGE(0));
  };
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 64, .order = order}, returns),
                      Catch::Contains("has ended and others of its block wait at a barrier"));
    CHECK_THROWS_WITH(simt::launch({.grid = {}, .threads = 64, .order = order}, one_stays),
                      Catch::Contains("waits for lanes of its warp that do not come"));
  }
}

TEST_CASE("a vote at a barrier is seen by all threads of the block alone", "[emulated_gpu]") {
  std::vector<int> seen(3 * 8);
  for (const Order order : {Order::forward, Order::reverse, Order::shuffled}) {
    simt::launch({.grid = {3}, .threads = 8, .order = order}, [&] {
      const bool any = __syncthreads_or(blockIdx.x == 1 && threadIdx.x == 5);
      const bool none = __syncthreads_or(false);
      seen[blockIdx.x * 8 + threadIdx.x] = any && !none ? 1 : 0;
    });
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == (i / 8 == 1 ? 1 : 0));
  }
}
