#include "core/data/loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;
using data::Loader;
using data::LoaderOptions;
using data::Sampler;

namespace {

// Example i is the number i and the label i; reads are counted, and one of them can fail.
class Numbers : public data::Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t failing = -1) : size_(size), failing_(failing) {}
  std::int64_t size() const override { return size_; }
  data::Field input() const override { return {DType::i64, {}}; }
  data::Field target() const override { return {DType::i32, {}}; }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    if (index == failing_) throw std::runtime_error("example cannot be read");
    ++reads;
    const auto label = static_cast<std::int32_t>(index);
    std::memcpy(input, &index, sizeof(index));
    std::memcpy(target, &label, sizeof(label));
  }
  mutable std::atomic<std::int64_t> reads = 0;

 private:
  std::int64_t size_, failing_;
};

std::int64_t input(const data::Batch& batch, std::size_t row) {
  std::int64_t value;
  std::memcpy(&value, batch.inputs.data() + row * sizeof(value), sizeof(value));
  return value;
}

data::BatchPlan plan_of(std::int64_t examples, std::int64_t batch, std::int64_t devices = 2) {
  return data::plan_evaluation(examples, batch, devices);
}

}  // namespace

TEST_CASE("the loader hands out every batch in order over epochs", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(10);
  const Sampler sampler = Sampler::shuffled(10, 1);
  const data::BatchPlan plan = plan_of(10, 4);
  for (const std::size_t depth : {2U, 3U, 7U}) {
    Loader loader(dataset, sampler, plan, {5, 200, depth});
    CHECK(loader.prefetches());
    for (std::int64_t step = 5; step < 200; ++step) {
      const data::Batch& batch = loader.next();
      REQUIRE(batch.step == step);
      REQUIRE(batch.epoch == step / 3);
      REQUIRE(batch.examples == (step % 3 == 2 ? 2 : 4));
      REQUIRE(reinterpret_cast<std::uintptr_t>(batch.mask.data()) % 64 == 0);
      for (std::int64_t r = 0; r < batch.examples; ++r) {
        REQUIRE(input(batch, static_cast<std::size_t>(r)) == sampler.index(step / 3, step % 3 * 4 + r));
      }
    }
    CHECK_THROWS_AS(loader.next(), std::out_of_range);
  }
}

TEST_CASE("a held batch stays as it is while others are filled ahead, and memory is reused", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(1000);
  Loader loader(dataset, Sampler::in_order(1000), plan_of(1000, 10), {0, 100, 2});
  std::vector<const void*> places;
  for (std::int64_t step = 0; step < 6; ++step) {
    const data::Batch& batch = loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (std::size_t r = 0; r < 10; ++r) REQUIRE(input(batch, r) == step * 10 + static_cast<std::int64_t>(r));
    places.push_back(batch.inputs.data());
  }
  CHECK(places[0] == places[2]);
  CHECK(places[1] == places[5]);
  CHECK(dataset->reads <= 70);  // never further ahead than the ring
}

TEST_CASE("the loader ends at once while its thread waits, works or has not begun", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(100);
  for (int i = 0; i < 50; ++i) {
    Loader loader(dataset, Sampler::in_order(100), plan_of(100, 10));
    for (int k = 0; k < i % 5; ++k) loader.next();
    if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  SUCCEED();
}

TEST_CASE("an exception while a batch is filled is rethrown by the call for that batch", "[data][loader]") {
  Loader loader(std::make_shared<Numbers>(100, 25), Sampler::in_order(100), plan_of(100, 10));
  CHECK(loader.next().step == 0);
  CHECK(loader.next().step == 1);
  CHECK_THROWS_WITH(loader.next(), "example cannot be read");
  CHECK_THROWS_WITH(loader.next(), "example cannot be read");
}

TEST_CASE("a batch of the whole dataset in file order is read once, without a thread", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(9);
  Loader loader(dataset, Sampler::in_order(9), plan_of(9, 9), {3, 8, 3});
  CHECK_FALSE(loader.prefetches());
  for (std::int64_t step = 3; step < 8; ++step) {
    const data::Batch& batch = loader.next();
    CHECK(batch.step == step);
    CHECK(batch.epoch == step);
    CHECK(batch.examples == 9);
    CHECK(batch.mask[8] == 1.0F);
    CHECK(batch.mask[9] == 0.0F);
    CHECK(batch.rows[8] == step * 9 + 8);
    CHECK(input(batch, 8) == 8);
  }
  CHECK(dataset->reads == 9);
  CHECK_THROWS_AS(loader.next(), std::out_of_range);
  // Shuffling would change which device gets what.
  CHECK(Loader(dataset, Sampler::shuffled(9, 0), plan_of(9, 9)).prefetches());
}

TEST_CASE("a restarted loader discards prefetched batches, and reads nothing before the first call", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(10);
  const data::BatchPlan plan = plan_of(10, 4);
  Loader loader(dataset, Sampler::in_order(10), plan, {0, 0, 3});
  CHECK_THROWS_AS(loader.next(), std::out_of_range);
  CHECK(dataset->reads == 0);
  for (int round = 0; round < 50; ++round) {
    loader.restart(0, plan.steps_per_epoch);
    const std::int64_t steps = round % (plan.steps_per_epoch + 1);  // some rounds are cut short
    for (std::int64_t step = 0; step < steps; ++step) {
      const data::Batch& batch = loader.next();
      CHECK(batch.step == step);
      CHECK(input(batch, 0) == step * plan.global);
    }
  }
}

TEST_CASE("a restarted loader retries a failed batch", "[data][loader]") {
  const data::BatchPlan plan = plan_of(10, 4);
  Loader loader(std::make_shared<Numbers>(10, 5), Sampler::in_order(10), plan, {0, 3, 3});
  for (int round = 0; round < 3; ++round) {
    CHECK(loader.next().step == 0);
    CHECK_THROWS_WITH(loader.next(), "example cannot be read");
    loader.restart(0, 3);
  }
}
