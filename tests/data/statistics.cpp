// What `normalize: auto` measures.
#include "core/data/statistics.h"

#include <sched.h>

#include <cmath>

#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/idx_source.h"
#include "core/data/arrays/values.h"
#include "core/data/tables/csv_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"
#include "tests/data/texts.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

// Arrays of inputs, with labels of 0.
std::shared_ptr<const data::Dataset> dataset_of(const std::string& inputs, std::size_t examples) {
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  return data::make_dataset(
      data::read_npy(folder.write("x", inputs)),
      data::read_npy(folder.write("y", npy("|u1", "(" + std::to_string(examples) + ",)", std::string(examples, '\0')))),
      notes);
}

}  // namespace

TEST_CASE("the statistics of inputs are those of the population, for each channel, in f64", "[data]") {
  const auto two = dataset_of(npy("<f4", "(2, 1, 2, 2)", raw<float>({1, 10, 2, 10, 3, 10, 6, 10})), 2);
  const data::Encoding::Statistics found = data::measure(*two, {}).statistics;
  REQUIRE(found.mean.size() == 2);
  CHECK(found.mean[0] == 3.0);
  CHECK(found.std[0] == std::sqrt(3.5));
  CHECK(found.mean[1] == 10.0);
  CHECK(found.std[1] == 1.0);  // which does not vary
  const auto bytes = dataset_of(npy("|u1", "(2, 1, 2, 1)", std::string("\x00\xff\xff\xff", 4)), 2);
  CHECK(data::measure(*bytes, {}).statistics.mean == std::vector<double>{0.75});
  CHECK(data::measure(*bytes, {}).statistics.std[0] == std::sqrt(0.1875));
  const std::vector<data::Encoding::Column> columns = {{"a", {}, 0}, {"b", {"x", "y"}, 0}};
  const auto table = dataset_of(npy("<f4", "(2, 3)", raw<float>({2, 1, 0, 6, 0, 1})), 2);
  CHECK(data::measure(*table, columns).statistics == data::Encoding::Statistics{{4, 0, 0}, {2, 1, 1}});
  const TemporaryFolder folder;  // tokens are integers of 32 bits: windows of 0 and 4, and of 2 and 6
  const auto text = text_of({folder.write("t", std::string("\0\2\4\6\1", 5))}, data::Tokens::bytes, 2);
  CHECK(data::measure(*text, {}).statistics == data::Encoding::Statistics{{2, 4}, {2, 2}});
}

TEST_CASE("statistics of many chunks are those of all numbers, with the same bits on one core", "[data]") {
  // Some 3 MiB: a large mean beside a small deviation, and a column that does not vary.
  constexpr std::size_t examples = 130'000;
  std::vector<float> values;
  long double sum = 0;
  for (std::size_t i = 0; i < examples; ++i) {
    const auto value = 1e6F + static_cast<float>(i * 7919 % 1001) / 8;
    values.insert(values.end(), {value, 0.1F, static_cast<float>(i % 3)});
    sum += static_cast<long double>(value);
  }
  const long double mean = sum / examples;
  long double squares = 0;
  for (std::size_t i = 0; i < examples; ++i) {
    const long double distance = static_cast<long double>(values[3 * i]) - mean;
    squares += distance * distance;
  }
  const auto dataset = dataset_of(npy("<f4", "(130000, 3)", raw(values)), examples);
  const data::Encoding::Statistics found = data::measure(*dataset, {}).statistics;
  CHECK(std::abs(found.mean[0] / static_cast<double>(mean) - 1) < 1e-14);
  CHECK(std::abs(found.std[0] / static_cast<double>(std::sqrt(squares / examples)) - 1) < 1e-10);
  CHECK(found.mean[1] == static_cast<double>(0.1F));
  CHECK(found.std[1] == 1.0);

  cpu_set_t all, one;
  REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
  CPU_ZERO(&one);
  std::size_t core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  CPU_SET(core, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  const data::Encoding::Statistics alone = data::measure(*dataset, {}).statistics;
  REQUIRE(::sched_setaffinity(0, sizeof all, &all) == 0);
  CHECK(alone == found);
}

TEST_CASE("statistics are those of the training examples that are left", "[data]") {
  spec::DataSpec data;
  data.source = data::Values{{{1}, {3}, {100}, {1000}}, {{0}, {0}, {0}, {0}}};
  data.batch_size = spec::BatchAll{};
  data.normalize = spec::Normalize{{}, {}, true};
  data.validation = spec::ValidationShare{0.25, 0, false};
  data.limit.train = spec::Amount{2, false, {}};
  const data::Source source = input::open(data, 0, 1);
  REQUIRE(source.encoding.statistics);
  CHECK(*source.encoding.statistics == data::Encoding::Statistics{{2}, {1}});
  // Another split alone is read by what is known, or learns it from the training split.
  CHECK(input::open(data, 0, 1, data::Split::validation).encoding == source.encoding);
  const data::Source known = input::open(data, 0, 1, data::Split::validation, &source.encoding);
  CHECK(known.encoding == source.encoding);
}

TEST_CASE("the statistics of targets are those of the population that is left, weighted where examples have weights",
          "[data]") {
  const TemporaryFolder folder;
  data::Csv csv;
  csv.train = {folder.write("t.csv", "x,y,w\n1,2e5,1\n2,2e5,1\n3,200004,2\n4,7,5\n5,9,1\n")};
  csv.target = {{"y"}};
  spec::DataSpec data;
  data.batch_size = spec::BatchAll{};
  data.numeric_targets = true;
  data.normalize_targets.emplace().others = data::TargetScale::automatic;
  data.validation = spec::ValidationShare{0.2, 0, false};
  data.limit.train = spec::Amount{3, false, {}};
  csv.inputs = {{{"x"}}};
  data.source = csv;
  const auto targets = input::open(data, 0, 1).encoding.targets;
  REQUIRE(targets);
  CHECK(std::abs(targets->mean[0] - (200000 + 4.0 / 3)) < 1e-9);
  CHECK(std::abs(targets->std[0] - std::sqrt(32.0 / 9)) < 1e-9);
  csv.weight = {"w"};
  data.source = csv;
  const data::Source weighted = input::open(data, 0, 1);
  CHECK(*weighted.encoding.targets == data::Encoding::Statistics{{200002}, {2}});
  // Another split alone takes them from the training split.
  CHECK(input::open(data, 0, 1, data::Split::validation).encoding == weighted.encoding);
  // Equal targets, whatever the weights.
  csv.train = {folder.write("t.csv", "x,y,w\n1,7,0\n2,0.1,0.3\n2,0.1,0.7\n3,0.1,0.11\n4,0.1,5\n5,0.1,1\n")};
  data.source = csv;
  CHECK(*input::open(data, 0, 1).encoding.targets == data::Encoding::Statistics{{0.1}, {1}});
}

TEST_CASE("a NaN in the inputs is found when they are measured", "[data]") {
  const TemporaryFolder folder;
  spec::DataSpec data;
  data.source_place = {"a.yaml", 3, 5, 1, ""};
  data.normalize = spec::Normalize{{}, {}, true};
  const std::string x = folder.write("x", idx(0x0d, {2, 1}, big(0x3f800000, 4) + big(0x7fc00000, 4)));
  data.source = data::Idx{{x, folder.write("y", idx(8, {2}, std::string(2, '\0')))}, {}, {}};
  CHECK(error_of([&] { input::open(data, 0, 1); }) ==
        "example 1 of '" + x + "' has NaN at [1,0] | remove the example, or replace the value");
}
