// Splits of a source: its own, a share of train, limits.
#include <algorithm>
#include <set>

#include "core/data/arrays/idx_source.h"
#include "core/data/arrays/values.h"
#include "core/data/subset.h"
#include "core/input/open.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;
using data::Split;

namespace {

// One feature, which is the index of the example.
spec::DataSpec counted(std::int64_t examples) {
  data::Values values;
  for (std::int64_t i = 0; i < examples; ++i) {
    values.inputs.push_back({static_cast<double>(i)});
    values.targets.push_back({0.0});
  }
  spec::DataSpec spec;
  spec.source = values;
  spec.batch_size = std::int64_t{10};
  spec.validation_place = {"a.yaml", 4, 3, 10, ""};
  return spec;
}

std::vector<int> indices(const data::Dataset& dataset) {
  std::vector<int> found;
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    float input = -1, target = -1;
    dataset.read(i, reinterpret_cast<std::byte*>(&input), reinterpret_cast<std::byte*>(&target));
    found.push_back(static_cast<int>(input));
  }
  return found;
}

std::vector<int> from_to(int first, int end) {
  std::vector<int> all;
  for (int i = first; i < end; ++i) all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("a validation share is taken out of train, and both parts keep the order of the file", "[data]") {
  for (const std::int64_t examples : {2, 3, 10, 37, 200}) {
    for (const double share : {0.001, 0.1, 0.25, 0.5, 0.66}) {
      const auto expected =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(share * static_cast<double>(examples) + 0.5));
      if (expected == examples) continue;
      INFO(examples << " " << share);
      spec::DataSpec spec = counted(examples);
      spec.validation = {share, 0, true};
      const data::Source source = input::open(spec, 0, 1);
      const std::vector<int> train = indices(*source.train), validation = indices(*source.validation);
      CHECK(source.validation->size() == expected);
      CHECK(std::is_sorted(train.begin(), train.end()));
      CHECK(std::is_sorted(validation.begin(), validation.end()));
      std::set<int> all(train.begin(), train.end());
      all.insert(validation.begin(), validation.end());
      CHECK(train.size() + validation.size() == static_cast<std::size_t>(examples));
      CHECK(all.size() == static_cast<std::size_t>(examples));
    }
  }
}

TEST_CASE("which examples are kept aside depends on the seed of data.validation alone", "[data]") {
  spec::DataSpec spec = counted(100);
  spec.validation = {0.2, 0, true};
  const std::vector<int> members = indices(*input::open(spec, 0, 1).validation);
  CHECK(members != from_to(80, 100));
  CHECK(members != from_to(0, 20));
  CHECK(indices(*input::open(spec, 7, 1).validation) == members);
  spec.seed = 3;
  CHECK(indices(*input::open(spec, 0, 4).validation) == members);
  spec.validation->seed = 1;
  CHECK(indices(*input::open(spec, 0, 1).validation) != members);
  spec.validation->shuffle = false;
  const data::Source last = input::open(spec, 0, 1);
  CHECK(indices(*last.validation) == from_to(80, 100));
  CHECK(indices(*last.train) == from_to(0, 80));
  CHECK(last.description == "values: 80 train, 20 validation examples of f32[1]; there is no test split");
}

TEST_CASE("a validation share that leaves nothing to train on is refused", "[data]") {
  spec::DataSpec spec = counted(3);
  spec.validation = {0.9, 0, true};
  CHECK(error_of([&] { input::open(spec, 0, 1); }, ExitStatus::usage) ==
        "validation: a share of 0.9 is 3 of the 3 training examples, so none is left to train on | at most 2 examples "
        "can be kept aside: use a smaller share");
  spec.source = counted(1).source;
  CHECK(error_of([&] { input::open(spec, 0, 1); }, ExitStatus::usage) ==
        "validation: a share of 0.9 is 1 of the 1 training example, so none is left to train on | remove it");
}

TEST_CASE("a limit takes the first examples, after the validation share", "[data]") {
  spec::DataSpec spec = counted(100);
  spec.validation = {0.2, 0, true};
  const data::Source whole = input::open(spec, 0, 1);
  std::vector<int> train = indices(*whole.train), validation = indices(*whole.validation);
  spec.limit.train = spec::Amount{3, true};
  spec.limit.validation = spec::Amount{7, false};
  const data::Source limited = input::open(spec, 0, 1);
  train.resize(30);
  validation.resize(7);
  CHECK(indices(*limited.train) == train);
  CHECK(indices(*limited.validation) == validation);

  SECTION("a batch per device counts over all devices") {
    spec.batch_size = spec::BatchPerDevice{2};
    CHECK(input::open(spec, 0, 4).train->size() == 24);
  }
  SECTION("a limit beyond the split takes all of it") {
    spec.limit.train = spec::Amount{1'000'000'000'000, true};
    CHECK(input::open(spec, 0, 1).train->size() == 80);
    spec.limit.train = spec::Amount{8, true};
    CHECK(input::open(spec, 0, 1).train->size() == 80);
  }
  SECTION("batches need a number of examples") {
    spec.batch_size = spec::BatchAll{};
    CHECK(error_of([&] { input::open(spec, 0, 1); }, ExitStatus::usage) ==
          "limit counts batches, but batch_size is all | count examples, such as 1000 examples, or set batch_size to a "
          "number");
  }
}

TEST_CASE("idx and npz have validation splits of their own", "[data]") {
  const TemporaryFolder folder;
  const auto pair = [&](const std::string& name, std::uint64_t examples) {
    return declare::FilePair{folder.write(name + "x", idx(8, {examples, 2}, std::string(2 * examples, 'a'))),
                             folder.write(name + "y", idx(8, {examples}, std::string(examples, '\1')))};
  };
  spec::DataSpec spec;
  spec.source = data::Idx{pair("a", 4), pair("b", 3), pair("c", 2)};
  CHECK(input::open(spec, 0, 1).description == "idx: 4 train, 3 validation, 2 test examples of u8[2]");
  const std::string y = folder.write("y", idx(8, {1}, "a"));
  spec.source = data::Idx{pair("a", 4), declare::FilePair{folder.write("t", idx(8, {1, 3}, "abc")), y}, {}};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }),
                 "the train split's inputs are u8[2], but the validation split's are u8[3]"));
}

TEST_CASE("a split is opened without the others", "[data]") {
  const TemporaryFolder folder;
  const declare::FilePair test{folder.write("x", idx(8, {2, 2}, "abcd")), folder.write("y", idx(8, {2}, "ab"))};
  const std::string missing = folder / "missing";
  spec::DataSpec spec;
  spec.batch_size = std::int64_t{1};
  spec.source = data::Idx{{missing, missing}, {}, test};
  const data::Source source = input::open(spec, 0, 1, Split::test);
  CHECK(source.train == nullptr);
  CHECK(source.test->size() == 2);
  CHECK(source.description == "idx: 2 test examples of u8[2]");
  CHECK(contains(error_of([&] { input::open(spec, 0, 1); }), "cannot open '" + missing + "'"));
  // A share of train cannot be had without train.
  spec.validation = {0.5, 0, true};
  CHECK(contains(error_of([&] { input::open(spec, 0, 1, Split::validation); }), "cannot open '" + missing + "'"));
  CHECK(input::open(spec, 0, 1, Split::test).test->size() == 2);
  spec.source = data::Idx{test, {}, {}};
  CHECK(input::open(spec, 0, 1, Split::validation).validation->size() == 1);
  CHECK(input::has_split(spec, Split::validation));
  CHECK_FALSE(input::has_split(spec, Split::test));
}

TEST_CASE("a part of a dataset finds every example of the whole, wherever the others lie", "[data]") {
  const data::Source source = input::open(counted(64), 0, 1);
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    for (std::int64_t count = 1; count < 64; ++count) {
      const data::Division parts = data::divide_shuffled(source.train, count, seed);
      std::vector<int> all = indices(*parts.taken);
      for (const int index : indices(*parts.rest)) all.push_back(index);
      std::sort(all.begin(), all.end());
      REQUIRE(all == from_to(0, 64));
    }
  }
}

TEST_CASE("splits are opened at once, and the first one's error is told", "[data]") {
  const TemporaryFolder folder;
  spec::DataSpec spec;
  spec.batch_size = std::int64_t{1};
  const auto missing = [&](const std::string& name) { return declare::FilePair{folder / name, folder / name}; };
  spec.source = data::Idx{missing("a"), missing("b"), missing("c")};
  for (int i = 0; i < 20; ++i) {
    CHECK(contains(error_of([&] { input::open(spec, 0, 1); }), "cannot open '" + (folder / "a") + "'"));
  }
}
