#include "core/input/batches/loader.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;
using data::Sampler;
using input::Loader;
using input::LoaderOptions;

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

// Memory for some batches, as a module has it.
struct Slots {
  Slots(const BatchPlan& plan, std::size_t count) {
    const auto rows = static_cast<std::size_t>(plan.rows());
    for (std::size_t i = 0; i < count; ++i) {
      inputs.emplace_back(rows);
      targets.emplace_back(rows);
      masks.emplace_back(rows);
      numbers.emplace_back(rows);
    }
  }
  std::vector<input::BatchBuffers> buffers() {
    std::vector<input::BatchBuffers> all;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      all.push_back({reinterpret_cast<std::byte*>(inputs[i].data()), reinterpret_cast<std::byte*>(targets[i].data()),
                     masks[i].data(), numbers[i].data(), sizeof(std::int64_t), sizeof(std::int32_t)});
    }
    return all;
  }
  std::int64_t input(const input::Batch& batch, std::int64_t row) const {
    return inputs[static_cast<std::size_t>(batch.slot)][static_cast<std::size_t>(row)];
  }

  std::vector<std::vector<std::int64_t>> inputs;
  std::vector<std::vector<std::int32_t>> targets;
  std::vector<std::vector<float>> masks;
  std::vector<std::vector<std::int64_t>> numbers;
};

BatchPlan plan_of(std::int64_t examples, std::int64_t batch, std::int64_t devices = 2) {
  return input::plan_evaluation(examples, batch, devices);
}

}  // namespace

TEST_CASE("the loader hands out every batch in order over epochs", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(10);
  const Sampler sampler = Sampler::shuffled(10, 1);
  const BatchPlan plan = plan_of(10, 4);
  for (const std::size_t depth : {2U, 3U, 7U}) {
    Slots slots(plan, depth);
    Loader loader(dataset, sampler, plan, slots.buffers(), {5, 200});
    CHECK(loader.prefetches());
    for (std::int64_t step = 5; step < 200; ++step) {
      const input::Batch batch = loader.next();
      REQUIRE(batch.step == step);
      REQUIRE(batch.epoch == step / 3);
      REQUIRE(batch.examples == (step % 3 == 2 ? 2 : 4));
      for (std::int64_t r = 0; r < batch.examples; ++r) {
        REQUIRE(slots.input(batch, r) == sampler.index(step / 3, step % 3 * 4 + r));
      }
    }
    CHECK_THROWS_AS(loader.next(), std::out_of_range);
  }
}

TEST_CASE("of several streams each has a batch of its own in every slot", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(10);
  const std::vector<input::Stream> streams = {Sampler::shuffled(10, 1), Sampler::shuffled(10, 2),
                                              Sampler::shuffled(10, 3)};
  const BatchPlan plan = plan_of(10, 4);
  Slots slots(plan, 3 * streams.size());
  Loader loader(dataset, streams, plan, slots.buffers());
  for (std::int64_t step = 0; step < 20; ++step) {
    input::Batch batch = loader.next();
    REQUIRE(batch.slot == step % 3);
    const int first = batch.slot * static_cast<int>(streams.size());
    for (std::size_t k = 0; k < streams.size(); ++k) {
      batch.slot = first + static_cast<int>(k);
      for (std::int64_t r = 0; r < batch.examples; ++r) {
        REQUIRE(slots.input(batch, r) == streams[k].order().index(step / 3, step % 3 * 4 + r));
      }
    }
  }
}

TEST_CASE("a held batch stays as it is while others are filled ahead, and memory is reused", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(1000);
  const BatchPlan plan = plan_of(1000, 10);
  Slots slots(plan, 2);
  Loader loader(dataset, Sampler::in_order(1000), plan, slots.buffers(), {0, 100});
  std::vector<int> places;
  for (std::int64_t step = 0; step < 6; ++step) {
    const input::Batch batch = loader.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    for (std::int64_t r = 0; r < 10; ++r) REQUIRE(slots.input(batch, r) == step * 10 + r);
    places.push_back(batch.slot);
  }
  CHECK(places == std::vector{0, 1, 0, 1, 0, 1});
  CHECK(dataset->reads <= 70);  // never further ahead than the ring
}

TEST_CASE("the loader ends at once while its thread waits, works or has not begun", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(100);
  const BatchPlan plan = plan_of(100, 10);
  Slots slots(plan, 3);
  for (int i = 0; i < 50; ++i) {
    Loader loader(dataset, Sampler::in_order(100), plan, slots.buffers());
    for (int k = 0; k < i % 5; ++k) loader.next();
    if (i % 10 == 9) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  SUCCEED();
}

TEST_CASE("an exception while a batch is filled is rethrown by the call for that batch", "[data][loader]") {
  const BatchPlan plan = plan_of(100, 10);
  Slots slots(plan, 3);
  Loader loader(std::make_shared<Numbers>(100, 25), Sampler::in_order(100), plan, slots.buffers());
  CHECK(loader.next().step == 0);
  CHECK(loader.next().step == 1);
  CHECK_THROWS_WITH(loader.next(), "example cannot be read");
  CHECK_THROWS_WITH(loader.next(), "example cannot be read");
}

TEST_CASE("a batch of the whole dataset in file order is read once, without a thread", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(9);
  const BatchPlan plan = plan_of(9, 9);
  Slots slots(plan, 1);
  CHECK(input::batches_in_memory(Sampler::in_order(9), plan) == 1);
  Loader loader(dataset, Sampler::in_order(9), plan, slots.buffers(), {3, 8});
  CHECK_FALSE(loader.prefetches());
  for (std::int64_t step = 3; step < 8; ++step) {
    const input::Batch batch = loader.next();
    CHECK(batch.step == step);
    CHECK(batch.epoch == step);
    CHECK(batch.examples == 9);
    CHECK(slots.masks[0][8] == 1.0F);
    CHECK(slots.masks[0][9] == 0.0F);
    CHECK(slots.numbers[0][8] == step * 9 + 8);
    CHECK(slots.input(batch, 8) == 8);
  }
  CHECK(dataset->reads == 9);
  CHECK_THROWS_AS(loader.next(), std::out_of_range);
  // Shuffling would change which device gets what.
  CHECK(input::batches_in_memory(Sampler::shuffled(9, 0), plan) == 3);
  Slots more(plan, 3);
  CHECK(Loader(dataset, Sampler::shuffled(9, 0), plan, more.buffers()).prefetches());
}

TEST_CASE("parts of a batch that a program does not read are not filled", "[data][loader]") {
  const BatchPlan plan = plan_of(9, 9);
  Slots slots(plan, 1);
  std::vector<input::BatchBuffers> buffers = slots.buffers();
  buffers[0].rows = nullptr;
  buffers[0].mask = nullptr;
  slots.masks[0][0] = 7;
  Loader loader(std::make_shared<Numbers>(9), Sampler::in_order(9), plan, buffers, {0, 2});
  for (int step = 0; step < 2; ++step) CHECK(slots.input(loader.next(), 8) == 8);
  CHECK(slots.masks[0][0] == 7);
}

TEST_CASE("a restarted loader discards prefetched batches, and reads nothing before the first call", "[data][loader]") {
  const auto dataset = std::make_shared<Numbers>(10);
  const BatchPlan plan = plan_of(10, 4);
  Slots slots(plan, 3);
  Loader loader(dataset, Sampler::in_order(10), plan, slots.buffers(), {0, 0});
  CHECK_THROWS_AS(loader.next(), std::out_of_range);
  CHECK(dataset->reads == 0);
  for (int round = 0; round < 50; ++round) {
    loader.restart(0, plan.steps_per_epoch);
    const std::int64_t steps = round % (plan.steps_per_epoch + 1);  // some rounds are cut short
    for (std::int64_t step = 0; step < steps; ++step) {
      const input::Batch batch = loader.next();
      CHECK(batch.step == step);
      CHECK(slots.input(batch, 0) == step * plan.global);
    }
  }
}

TEST_CASE("a restarted loader retries a failed batch", "[data][loader]") {
  const BatchPlan plan = plan_of(10, 4);
  Slots slots(plan, 3);
  Loader loader(std::make_shared<Numbers>(10, 5), Sampler::in_order(10), plan, slots.buffers(), {0, 3});
  for (int round = 0; round < 3; ++round) {
    CHECK(loader.next().step == 0);
    CHECK_THROWS_WITH(loader.next(), "example cannot be read");
    loader.restart(0, 3);
  }
}
