// Sequences of different lengths in NumPy archives.
#include <cmath>
#include <limits>

#include "core/data/arrays/npz_source.h"
#include "core/data/statistics.h"
#include "core/input/batches/batch.h"
#include "core/input/open.h"
#include "core/spec/load.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

const float behind = std::numeric_limits<float>::quiet_NaN();

// Three sequences of at most 3 positions with 2 numbers; their lengths are 2, 0 and 3.
std::string signals() {
  return npy(
      "<f4", "(3, 3, 2)",
      raw<float>({1, 10, 3, 30, behind, behind, behind, behind, behind, behind, behind, behind, 5, 50, 7, 70, 9, 90}));
}

std::string lengths_file(const std::vector<std::int64_t>& lengths) {
  return npy("<i8", "(" + std::to_string(lengths.size()) + ",)", raw(lengths));
}

spec::Loaded loaded_from(const TemporaryFolder& folder, const std::string& source, const std::string& first,
                         const std::string& more = "") {
  return spec::load_text("data: {batch_size: 3, " + more + "source: {npz: " + source + "}}\nmodel: {layers: [" + first +
                             "]}\nloss: softmax_cross_entropy\noptimizer: {sgd: {}, learning_rate: 0.1}\n" +
                             "train: {duration: 1 step}\n",
                         "c.yaml", folder.path().string(), {});
}

data::Source opened_from(const TemporaryFolder& folder, const std::string& source,
                         const std::string& first = "dense: 2", const std::string& more = "") {
  return input::open(loaded_from(folder, source, first, more).spec.data, 0, 1);
}

constexpr const char* in_file = "{file: a.npz, train: {inputs: x, targets: y, lengths: n}}";

std::vector<std::int32_t> lengths_of(const data::Dataset& dataset) {
  std::vector<std::int32_t> found;
  for (std::int64_t i = 0; i < dataset.size(); ++i) found.push_back(dataset.length(i));
  return found;
}

}  // namespace

TEST_CASE("npz reads the lengths of sequences, and nothing behind them", "[data]") {
  const TemporaryFolder folder;
  const std::string labels = npy("<i8", "(3,)", raw<std::int64_t>({0, 1, 1}));
  folder.write("a.npz", archive({{"x.npy", signals()}, {"y.npy", labels}, {"n.npy", lengths_file({2, 0, 3})}}));
  for (const char* const source : {in_file, "{train: a.npz, inputs: x, targets: y, lengths: n}"}) {
    const data::Source found = opened_from(folder, source, "dense: 2", "normalize: auto, ");
    REQUIRE(found.train->has_lengths());
    CHECK(lengths_of(*found.train) == std::vector<std::int32_t>{2, 0, 3});
    std::vector<float> inputs(6);
    found.train->read(0, reinterpret_cast<std::byte*>(inputs.data()), reinterpret_cast<std::byte*>(inputs.data() + 5));
    CHECK(std::vector<float>(inputs.begin(), inputs.begin() + 5) == std::vector<float>{1, 10, 3, 30, 0});
    // Of 1, 3, 5, 7, 9.
    CHECK(found.encoding.statistics->mean == std::vector<double>{5, 50});
    CHECK(found.encoding.statistics->std == std::vector<double>{std::sqrt(8.0), std::sqrt(800.0)});
    CHECK(found.channels == data::Channels::last);
  }
}

TEST_CASE("sequences end before the padding tokens that are last in their row", "[data]") {
  const TemporaryFolder folder;
  const std::string tokens = npy("<i8", "(3, 4)", raw<std::int64_t>({4, 0, 2, 0, 0, 0, 0, 0, 1, 2, 3, 4}));
  const std::string labels = npy("<i8", "(3, 4)", raw<std::int64_t>({1, 2, 1, 9, 9, 9, 9, 9, 0, 1, 2, 0}));
  folder.write("a.npz", archive({{"x.npy", tokens}, {"y.npy", labels}}));
  const data::Source found = opened_from(folder, "{file: a.npz, train: [x, y], padding_token: 0}",
                                         "embedding: {num_embeddings: 5, features: 2}");
  CHECK(lengths_of(*found.train) == std::vector<std::int32_t>{3, 0, 4});
  std::vector<std::int32_t> of_inputs(4), of_targets(4);
  found.train->read(0, reinterpret_cast<std::byte*>(of_inputs.data()), reinterpret_cast<std::byte*>(of_targets.data()));
  CHECK(of_inputs == std::vector<std::int32_t>{4, 0, 2, 0});
  CHECK(of_targets == std::vector<std::int32_t>{1, 2, 1, -1});
  CHECK(found.train->label_range() == std::pair<std::int64_t, std::int64_t>{0, 2});
  CHECK(data::count_labels(*found.train) == std::map<std::int32_t, std::int64_t>{{0, 2}, {1, 3}, {2, 2}});
}

TEST_CASE("batches have the lengths of their rows, those of padding too", "[data]") {
  const TemporaryFolder folder;
  const std::string labels = npy("<i8", "(3,)", raw<std::int64_t>({0, 1, 1}));
  folder.write("a.npz", archive({{"x.npy", signals()}, {"y.npy", labels}, {"n.npy", lengths_file({2, 0, 3})}}));
  const data::Source found = opened_from(folder, in_file);
  const BatchPlan plan = input::plan_evaluation(3, 2, 1);
  std::vector<std::byte> inputs(2 * 24), targets(2 * 4);
  std::vector<std::vector<std::int32_t>> lengths(2, std::vector<std::int32_t>(2));
  for (std::int64_t step = 0; step < 2; ++step) {
    input::fill(
        *found.train, data::Sampler::in_order(3), plan, step,
        {inputs.data(), targets.data(), nullptr, nullptr, 24, 4, {}, lengths[static_cast<std::size_t>(step)].data()});
  }
  CHECK(lengths == std::vector<std::vector<std::int32_t>>{{2, 0}, {3, 3}});
}

TEST_CASE("lengths that are no lengths of the sequences are refused with the example", "[data]") {
  const TemporaryFolder folder;
  const std::string labels = npy("<i8", "(3,)", raw<std::int64_t>({0, 1, 1}));
  const auto told = [&](const std::string& lengths, const std::string& inputs = signals()) {
    folder.write("a.npz", archive({{"x.npy", inputs}, {"y.npy", labels}, {"n.npy", lengths}}));
    return error_of([&] { opened_from(folder, in_file); });
  };
  CHECK(contains(told(lengths_file({2, 4, 3})), "the length of example 1 in array 'n' of"));
  CHECK(contains(told(lengths_file({2, 4, 3})), " is 4, but its sequence in array 'x' of"));
  CHECK(contains(told(lengths_file({2, -1, 3})), " is -1, but its sequence"));
  CHECK(contains(told(lengths_file({2, 3})), " are i64[2], expected an integer for each of the 3 examples of"));
  CHECK(contains(told(npy("<f4", "(3,)", raw<float>({1, 2, 3}))), " are f32[3], expected an integer for each"));
  CHECK(contains(told(lengths_file({1, 1, 1}), npy("<f4", "(3,)", raw<float>({1, 2, 3}))),
                 " has the shape [3], and lengths are those of sequences (N, T, ...)"));
  folder.write("a.npz", archive({{"x.npy", signals()}, {"y.npy", labels}}));
  CHECK(contains(error_of([&] { opened_from(folder, "{file: a.npz, train: [x, y], padding_token: 0}"); }),
                 " is f32[3,3,2], and padding_token is for integers (N, T) | name an array of lengths"));
  CHECK(contains(
      error_of([&] { opened_from(folder, "{file: a.npz, train: [x, y], channels: first, padding_token: 0}"); }),
      "channels: first has no sequences (N, T, ...), and npz has lengths"));
}
