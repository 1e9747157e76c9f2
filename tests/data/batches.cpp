#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/arrays/array_dataset.h"
#include "core/data/sampler.h"
#include "core/input/batches/batch.h"
#include "core/input/open.h"
#include "tests/catch.h"

using namespace pmaptrain;
using data::Sampler;

namespace {

spec::DataSpec with(spec::BatchSize size, spec::Remainder remainder = spec::Remainder::drop,
                    std::int64_t microbatches = 1) {
  spec::DataSpec spec;
  spec.batch_size = size;
  spec.remainder = remainder;
  spec.microbatches = microbatches;
  spec.batch_size_place = {"a.yaml", 1, 1, 1, ""};
  return spec;
}

const Mesh eight({{"devices", 8}});

std::string refusal(const spec::DataSpec& spec, std::int64_t examples, const Mesh& mesh = eight) {
  try {
    input::plan_training(spec, mesh, examples);
  } catch (const Error& error) {
    CHECK(error.status() == ExitStatus::usage);
    std::string text;
    for (const Diagnostic& d : error.diagnostics()) {
      CHECK(d.place.known());
      text += d.message + " | " + d.help + "\n";
    }
    return text;
  }
  return "";
}

}  // namespace

TEST_CASE("a shuffled epoch is a permutation for every small size and many seeds", "[data]") {
  for (std::int64_t n = 1; n <= 70; ++n) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const Sampler sampler = Sampler::shuffled(n, seed);
      std::vector<int> seen(static_cast<std::size_t>(n));
      for (std::int64_t p = 0; p < n; ++p) {
        const std::int64_t index = sampler.index(static_cast<std::int64_t>(seed) * 3, p);
        REQUIRE((index >= 0 && index < n));
        ++seen[static_cast<std::size_t>(index)];
      }
      REQUIRE(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
    }
  }
}

TEST_CASE("orders of three examples are all about equally likely", "[data]") {
  std::vector<int> counts(27);
  const Sampler sampler = Sampler::shuffled(3, 5);
  for (std::int64_t epoch = 0; epoch < 6000; ++epoch) {
    ++counts[static_cast<std::size_t>(9 * sampler.index(epoch, 0) + 3 * sampler.index(epoch, 1) +
                                      sampler.index(epoch, 2))];
  }
  CHECK(std::count(counts.begin(), counts.end(), 0) == 21);
  for (const int count : counts) CHECK((count == 0 || std::abs(count - 1000) < 130));
}

TEST_CASE("a large permutation moves examples far and differs by epoch and seed", "[data]") {
  constexpr std::int64_t n = 60000;
  const Sampler sampler = Sampler::shuffled(n, 0);
  std::vector<bool> seen(n);
  std::int64_t same_epoch = 0, same_seed = 0, neighbours = 0;
  double product = 0;
  for (std::int64_t p = 0; p < n; ++p) {
    const std::int64_t index = sampler.index(0, p);
    REQUIRE_FALSE(seen[static_cast<std::size_t>(index)]);
    seen[static_cast<std::size_t>(index)] = true;
    same_epoch += sampler.index(1, p) == index ? 1 : 0;
    same_seed += Sampler::shuffled(n, 1).index(0, p) == index ? 1 : 0;
    neighbours += p > 0 && std::abs(sampler.index(0, p - 1) - index) == 1 ? 1 : 0;
    product += (static_cast<double>(p) / n - 0.5) * (static_cast<double>(index) / n - 0.5);
  }
  CHECK(same_epoch < 10);
  CHECK(same_seed < 10);
  CHECK(neighbours < 15);
  CHECK(std::abs(product / n * 12) < 0.02);  // the correlation of position and example
  const Sampler vast = Sampler::shuffled(std::int64_t{1} << 62, 0);
  CHECK(vast.index(0, 1) >= 0);
  CHECK(vast.index(0, 1) != vast.index(0, 2));
}

TEST_CASE("shuffle false and batch_size all keep file order", "[data]") {
  spec::DataSpec spec = with(std::int64_t{8});
  CHECK(input::training_sampler(spec, 0, 100).shuffles());
  spec.shuffle = false;
  CHECK(input::training_sampler(spec, 0, 100).index(3, 42) == 42);
  CHECK_FALSE(input::training_sampler(with(spec::BatchAll{}), 0, 100).shuffles());
}

TEST_CASE("a batch that divides is cut evenly, and the short last batch is dropped and counted", "[data]") {
  const BatchPlan plan = input::plan_training(with(std::int64_t{128}), eight, 50000);
  CHECK(plan.rows_per_device == 16);
  CHECK(plan.steps_per_epoch == 390);
  CHECK(plan.examples_per_epoch == 49920);
  CHECK(plan.skipped_per_epoch == 80);
  CHECK(plan.padded_per_epoch == 0);
  CHECK(input::plan_training(with(spec::BatchPerDevice{16}), eight, 50000) == plan);
  const BatchPlan all = input::plan_training(with(spec::BatchAll{}), eight, 800);
  CHECK(all.global == 800);
  CHECK(all.steps_per_epoch == 1);
}

TEST_CASE("remainder mask pads a batch that does not divide and the short last one", "[data]") {
  const BatchPlan plan = input::plan_training(with(std::int64_t{100}, spec::Remainder::mask), eight, 250);
  CHECK(plan.rows_per_device == 13);
  CHECK(plan.rows() == 104);
  CHECK(plan.steps_per_epoch == 3);
  CHECK(plan.examples_per_epoch == 250);
  CHECK(plan.skipped_per_epoch == 0);
  CHECK(plan.padded_per_epoch == 3 * 104 - 250);
  CHECK(plan.examples_in(1) == 100);
  CHECK(plan.examples_in(2) == 50);
  CHECK(input::plan_training(with(std::int64_t{100}, spec::Remainder::mask, 4), eight, 250).rows_per_device == 16);
}

TEST_CASE("a batch of all examples that does not divide is refused with the nearest size", "[data]") {
  CHECK(refusal(with(spec::BatchAll{}), 801) ==
        "batch_size all (801 examples) does not divide over axis 'devices' (8 devices): 801 = 8 × 100 + 1 | "
        "batch_size 800 would divide; remainder: mask pads the batch with rows of zero weight\n");
  CHECK(refusal(with(spec::BatchAll{}, spec::Remainder::drop, 4), 801)
            .starts_with("batch_size all (801 examples) does not divide over axis 'devices' (8 devices) and 4 "
                         "microbatches: 801 = 32 × 25 + 1 | batch_size 800 would divide"));
  CHECK(refusal(with(spec::BatchAll{}), 7).ends_with("| remainder: mask pads the batch with rows of zero weight\n"));
  const Mesh nested({{"model_replicas", 2}, {"data_shards", 4}});
  CHECK(
      refusal(with(spec::BatchAll{}), 100, nested)
          .starts_with("batch_size all (100 examples) does not divide over axes 'model_replicas' and 'data_shards' (8 "
                       "devices): "));
}

TEST_CASE("an epoch without a step, and a short batch with remainder: error, are refused with valid sizes", "[data]") {
  CHECK(refusal(with(std::int64_t{128}), 100) ==
        "batch_size 128 is more than the 100 training examples, so an epoch has no step | use at most 96\n");
  CHECK(refusal(with(spec::BatchPerDevice{16}), 100) ==
        "batch_size_per_device 16 (128 in total) is more than the 100 training examples, so an epoch has no step | "
        "use at most 12 per device\n");
  CHECK(refusal(with(std::int64_t{128}, spec::Remainder::error), 60000)
            .starts_with("batch_size 128 leaves a short last batch and remainder is error: 60000 = 128 × 468 + 96 | "
                         "batch_size 120 or 160 would divide; remainder: drop skips"));
  CHECK(refusal(with(std::int64_t{120}, spec::Remainder::error), 60000).empty());
  const std::string others = "remainder: drop skips the last examples, remainder: mask pads the last batch\n";
  CHECK(refusal(with(std::int64_t{64}, spec::Remainder::error), 40) ==
        "batch_size 64 leaves a short last batch and remainder is error: 40 = 64 × 0 + 40 | "
        "batch_size 40 would divide; " +
            others);
  CHECK(refusal(with(std::int64_t{8}, spec::Remainder::error), 84) ==
        "batch_size 8 leaves a short last batch and remainder is error: 84 = 8 × 10 + 4 | " + others);
  CHECK(refusal(with(std::int64_t{1} << 50), 100).starts_with("batch_size 1125899906842624 is out of range"));
  CHECK(refusal(with(spec::BatchPerDevice{std::int64_t{1} << 60}), 100).find("out of range") != std::string::npos);
}

TEST_CASE("evaluation counts every example once, whatever the batch", "[data]") {
  for (const std::int64_t batch : {1, 7, 100, 128, 60000}) {
    const BatchPlan plan = input::plan_evaluation(1000, batch, 8);
    CHECK(plan.examples_per_epoch == 1000);
    CHECK(plan.skipped_per_epoch == 0);
    CHECK(plan.rows() < std::min<std::int64_t>(batch, 1000) + 8);
    std::int64_t total = 0;
    for (std::int64_t k = 0; k < plan.steps_per_epoch; ++k) total += plan.examples_in(k);
    CHECK(total == 1000);
  }
}

TEST_CASE("a batch holds its examples in the sampler's order, then its last one again", "[data]") {
  std::vector<std::vector<double>> inputs, targets;
  for (int i = 0; i < 10; ++i) {
    inputs.push_back({i + 1.0, -i - 1.0});
    targets.push_back({i + 0.5});
  }
  const auto dataset = data::make_dataset(inputs, targets);
  const Mesh three({{"devices", 3}});
  const BatchPlan plan = input::plan_training(with(std::int64_t{4}, spec::Remainder::mask), three, 10);
  REQUIRE(plan.rows() == 6);
  REQUIRE(plan.steps_per_epoch == 3);
  const Sampler sampler = Sampler::shuffled(10, 2);
  std::vector<float> x(12), y(6), mask(6);
  std::vector<std::int64_t> rows(6);
  const input::BatchBuffers buffers = {reinterpret_cast<std::byte*>(x.data()),
                                       reinterpret_cast<std::byte*>(y.data()),
                                       mask.data(),
                                       rows.data(),
                                       2 * sizeof(float),
                                       sizeof(float)};
  for (std::int64_t step = 0; step < 9; ++step) {
    std::fill(x.begin(), x.end(), 99.0F);
    std::fill(y.begin(), y.end(), 99.0F);
    input::fill(*dataset, sampler, plan, step, buffers);
    const std::int64_t count = step % 3 == 2 ? 2 : 4;
    for (std::int64_t r = 0; r < 6; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const std::int64_t position = step % 3 * 4 + std::min(r, count - 1);
      const std::int64_t index = sampler.index(step / 3, position);
      CHECK(mask[i] == (r < count ? 1.0F : 0.0F));
      CHECK(x[2 * i] == static_cast<float>(index + 1));
      CHECK(x[2 * i + 1] == -static_cast<float>(index + 1));
      CHECK(y[i] == static_cast<float>(index) + 0.5F);
      CHECK(rows[i] == step / 3 * 10 + position);
    }
  }
}
