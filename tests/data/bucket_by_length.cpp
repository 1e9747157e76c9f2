// Batches of sequences of similar length, and the lengths to which their steps are padded.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/data/subset.h"
#include "core/input/batches/loader.h"
#include "core/input/batches/padded_sizes.h"
#include "tests/catch.h"

using namespace pmaptrain;
using data::Sampler;
using Indices = std::vector<std::int64_t>;

namespace {

// Example i has lengths[i] positions, which are 1, 2, 3..., and zeros behind them; so has its target.
class Sequences : public data::Dataset {
 public:
  Sequences(std::vector<std::int32_t> lengths, std::int64_t positions)
      : lengths_(std::move(lengths)), positions_(positions) {}
  std::int64_t size() const override { return std::ssize(lengths_); }
  data::Field input() const override { return {DType::i32, {positions_}}; }
  data::Field target() const override { return input(); }
  void read(std::int64_t index, std::byte* input, std::byte* target) const override {
    std::vector<std::int32_t> row(static_cast<std::size_t>(positions_));
    std::iota(row.begin(), row.begin() + length(index), 1);
    if (input != nullptr) std::memcpy(input, row.data(), row.size() * sizeof(std::int32_t));
    std::memcpy(target, row.data(), row.size() * sizeof(std::int32_t));
  }
  bool has_lengths() const override { return true; }
  std::int32_t length(std::int64_t index) const override { return lengths_[static_cast<std::size_t>(index)]; }

 private:
  std::vector<std::int32_t> lengths_;
  std::int64_t positions_;
};

// 0 to most, in no order.
std::vector<std::int32_t> mixed_lengths(std::int64_t count, std::int64_t most) {
  std::vector<std::int32_t> lengths;
  for (std::int64_t i = 0; i < count; ++i) lengths.push_back(static_cast<std::int32_t>(i * 7919 % (most + 1)));
  return lengths;
}

Indices epoch_of(const Sampler& order, std::int64_t epoch) {
  Indices found;
  for (std::int64_t i = 0; i < order.examples(); ++i) found.push_back(order.index(epoch, i));
  return found;
}

}  // namespace

TEST_CASE("an order by length has every example once in each epoch, in batches of windows that are sorted", "[data]") {
  constexpr std::int64_t examples = 103, batch = 4, window = 5;
  const std::vector<std::int32_t> lengths = mixed_lengths(examples, 30);
  const Sampler order = Sampler::by_length(lengths, 3, batch, window), plain = Sampler::shuffled(examples, 3);
  CHECK(order.shuffles());
  const Indices first = epoch_of(order, 0);
  CHECK(first != epoch_of(order, 1));
  for (const std::int64_t epoch : {0, 1, 8}) {
    const Indices of_plain = epoch_of(plain, epoch), found = epoch_of(order, epoch);
    // The windows of the plain order, sorted, as batches.
    std::vector<Indices> expected, batches;
    for (std::int64_t from = 0; from < 100; from += window * batch) {
      Indices rows(of_plain.begin() + from, of_plain.begin() + from + window * batch);
      std::stable_sort(rows.begin(), rows.end(), [&](std::int64_t a, std::int64_t b) {
        return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
      });
      for (std::int64_t i = 0; i < window; ++i) {
        expected.emplace_back(rows.begin() + i * batch, rows.begin() + (i + 1) * batch);
      }
    }
    for (std::int64_t i = 0; i < 100; i += batch) batches.emplace_back(found.begin() + i, found.begin() + i + batch);
    CHECK(batches != expected);
    CHECK(std::is_permutation(batches.begin(), batches.end(), expected.begin(), expected.end()));
    CHECK(std::equal(found.begin() + 100, found.end(), of_plain.begin() + 100));  // what fills no batch
  }
  // Any example of any epoch, without those before it.
  CHECK(Sampler::by_length(lengths, 3, batch, window).index(8, 57) == order.index(8, 57));
  CHECK(epoch_of(Sampler::by_length(lengths, 4, batch, window), 0) != first);
}

TEST_CASE("a window of more batches than there are sorts the epoch, and one batch of it stays as it is", "[data]") {
  const std::vector<std::int32_t> lengths = mixed_lengths(10, 30);
  const Sampler order = Sampler::by_length(lengths, 0, 5, std::int64_t{1} << 62);
  Indices found = epoch_of(order, 2);
  const auto is_shorter = [&](std::int64_t a, std::int64_t b) {
    return lengths[static_cast<std::size_t>(a)] < lengths[static_cast<std::size_t>(b)];
  };
  CHECK(std::is_sorted(found.begin(), found.begin() + 5, is_shorter));
  CHECK(std::is_sorted(found.begin() + 5, found.end(), is_shorter));
  CHECK(epoch_of(Sampler::by_length(lengths, 0, 11, 3), 2) == epoch_of(Sampler::shuffled(10, 0), 2));
}

TEST_CASE("steps are padded to the longest sequence of each quarter, in eights", "[data]") {
  const auto sizes = [](const std::vector<std::int32_t>& lengths, std::int64_t positions) {
    return input::padded_sizes(Sequences(lengths, positions));
  };
  CHECK(sizes({3, 17, 9, 40, 25, 12, 33, 20}, 100) == Indices{16, 24, 32, 40});
  CHECK(sizes({3, 17, 9, 40, 25, 12, 33, 20}, 40) == Indices{16, 24, 32});  // the arrays themselves are the longest
  CHECK(sizes({0, 0, 0, 50}, 50) == Indices{8});
  CHECK(sizes({50, 49, 50, 48}, 50) == Indices{48});
  CHECK(sizes({7, 7}, 7).empty());
}

TEST_CASE("a batch has the shortest size that has all sequences of all its rows", "[data][loader]") {
  constexpr std::int64_t examples = 64, positions = 31;
  const auto dataset = std::make_shared<Sequences>(mixed_lengths(examples, positions), positions);
  const BatchPlan plan = input::plan_evaluation(examples, 8, 4);
  const Sampler order = Sampler::by_length(mixed_lengths(examples, positions), 0, 8, 4);
  // This process has the last two rows of each batch.
  const IndexRange own{6, 2};
  std::vector<std::vector<std::int32_t>> memory;
  const auto slots_of = [&](std::int64_t length) {
    std::vector<input::BatchBuffers> slots;
    for (int i = 0; i < 3; ++i) {
      std::vector<std::int32_t*> arrays;
      for (const std::int64_t elements : {own.count * length, own.count * length, own.count}) {
        arrays.push_back(memory.emplace_back(static_cast<std::size_t>(elements)).data());
      }
      const auto bytes = static_cast<std::size_t>(length) * sizeof(std::int32_t);
      slots.push_back({reinterpret_cast<std::byte*>(arrays[0]), reinterpret_cast<std::byte*>(arrays[1]), nullptr,
                       nullptr, bytes, bytes, own, arrays[2]});
    }
    return slots;
  };
  memory.reserve(64);
  const std::vector<std::int64_t> sizes = input::padded_sizes(*dataset);
  REQUIRE(sizes == Indices{8, 16, 24});
  const std::vector<input::BatchBuffers> whole = slots_of(positions);
  std::vector<input::Shorter> shorter;
  for (const std::int64_t size : sizes) {
    shorter.push_back({size, data::first_positions(dataset, size, true), slots_of(size)});
  }
  const std::vector<input::Shorter> kept = shorter;
  input::Loader loader(dataset, {order}, plan, whole, {0, 24}, shorter);
  std::vector<std::int64_t> steps_of_size(4);
  for (std::int64_t step = 0; step < 24; ++step) {
    const input::Batch batch = loader.next();
    std::int32_t longest = 0;
    for (std::int64_t i = 0; i < 8; ++i) {
      longest = std::max(longest, dataset->length(order.index(step / 8, step % 8 * 8 + i)));
    }
    const std::size_t expected = longest <= 8 ? 1U : longest <= 16 ? 2U : longest <= 24 ? 3U : 0U;
    REQUIRE(batch.size == expected);
    ++steps_of_size[batch.size];
    const std::int64_t length = batch.size == 0 ? positions : sizes[batch.size - 1];
    const input::BatchBuffers& filled =
        (batch.size == 0 ? whole : kept[batch.size - 1].slots)[static_cast<std::size_t>(batch.slot)];
    for (std::int64_t r = 0; r < own.count; ++r) {
      const std::int64_t example = order.index(step / 8, step % 8 * 8 + own.first + r);
      CHECK(filled.lengths[r] == dataset->length(example));
      for (const std::byte* array : {filled.inputs, filled.targets}) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int32_t found = reinterpret_cast<const std::int32_t*>(array)[r * length + i];
          REQUIRE(found == (i < dataset->length(example) ? i + 1 : 0));
        }
      }
    }
  }
  CHECK(std::count(steps_of_size.begin(), steps_of_size.end(), 0) == 0);
  loader.restart(3, 4);
  CHECK(loader.next().step == 3);
}
