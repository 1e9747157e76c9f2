// Numbers that float32 cannot hold: their statistics, and how they are read until they are normalised.
#include <cmath>

#include "core/data/arrays/array_dataset.h"
#include "core/data/arrays/npz_source.h"
#include "core/data/arrays/values.h"
#include "core/data/statistics.h"
#include "core/data/tables/csv_source.h"
#include "core/input/open.h"
#include "tests/catch.h"
#include "tests/data/files.h"

using namespace pmaptrain;
using namespace pmaptrain::testing;

namespace {

constexpr double first_second = 1700000000;

// 64 seconds, and a number of each.
std::string seconds() {
  std::string text = "t,y\n";
  for (int i = 0; i < 64; ++i) text += std::to_string(1700000000 + i) + "," + std::to_string(i % 3) + ".5\n";
  return text;
}

spec::DataSpec table_of(const std::string& path) {
  data::Csv csv;
  csv.train = {path};
  csv.target = {{"y"}};
  spec::DataSpec data;
  data.source = csv;
  data.batch_size = std::int64_t{8};
  data.numeric_targets = true;
  data.normalize.emplace().automatic = true;
  return data;
}

spec::DataSpec values_of(std::vector<std::vector<double>> inputs, std::vector<std::vector<double>> targets) {
  spec::DataSpec data;
  data.source = data::Values{std::move(inputs), std::move(targets)};
  data.batch_size = std::int64_t{2};
  data.numeric_targets = true;
  data.normalize.emplace().automatic = true;
  return data;
}

std::vector<double> first_input(const data::Dataset& dataset) {
  std::vector<double> values(dataset.input().bytes() / sizeof(double));
  std::vector<std::byte> target(dataset.target().bytes());
  dataset.read(0, reinterpret_cast<std::byte*>(values.data()), target.data());
  return values;
}

}  // namespace

TEST_CASE("means and deviations of large integers are those of the file's digits", "[data]") {
  const TemporaryFolder folder;
  const double deviation = std::sqrt((64.0 * 64 - 1) / 12);
  const std::string csv = folder.write("times.csv", seconds());
  const data::Source table = input::open(table_of(csv), 0, 1);
  REQUIRE(table.encoding.statistics);
  CHECK(table.encoding.statistics->mean == std::vector<double>{first_second + 31.5});
  CHECK(std::abs(table.encoding.statistics->std[0] - deviation) < 1e-12);
  CHECK(table.encoding.wide_inputs);
  CHECK(table.train->input().dtype == DType::f64);
  CHECK(first_input(*table.train) == std::vector<double>{first_second});

  std::vector<std::int64_t> times;
  for (int i = 0; i < 64; ++i) times.push_back(1700000000 + i);
  data::Npz npz;
  npz.file = folder.write(
      "t.npz", archive({{"x.npy", npy("<i8", "(64, 1)", raw(times))}, {"y.npy", npy("<i8", "(64,)", raw(times))}}));
  npz.train = {"", "x", "y"};
  spec::DataSpec data = table_of(csv);
  data.source = npz;
  data.normalize_targets.emplace().others = data::TargetScale::automatic;
  const data::Source array = input::open(data, 0, 1);
  CHECK(array.encoding.statistics->mean == std::vector<double>{first_second + 31.5});
  CHECK(array.encoding.targets->mean == std::vector<double>{first_second + 31.5});
  CHECK(array.encoding.wide_targets);
  CHECK(array.train->target().dtype == DType::f64);

  const data::Source written = input::open(values_of({{first_second}, {first_second + 1}}, {{1}, {2}}), 0, 1);
  CHECK(written.encoding.statistics->mean == std::vector<double>{first_second + 0.5});
  CHECK(written.train->input().dtype == DType::f64);
  // What a run learned is kept where its data is read again.
  const data::Source again = input::open(table_of(csv), 0, 1, data::Split::train, &table.encoding);
  CHECK(again.train->input().dtype == DType::f64);
}

TEST_CASE("numbers that float32 tells apart stay float32, and equal numbers have the deviation 1", "[data]") {
  std::vector<std::vector<double>> inputs, targets;
  for (int i = 0; i < 30; ++i) {
    inputs.push_back({0.1, 2000.0 + i, 0.1 * i});
    targets.push_back({static_cast<double>(i)});
  }
  const data::Source source = input::open(values_of(inputs, targets), 0, 1);
  CHECK_FALSE(source.encoding.wide_inputs);
  CHECK(source.train->input().dtype == DType::f32);
  CHECK(source.encoding.statistics->mean[0] == 0.1);
  CHECK(source.encoding.statistics->std[0] == 1);
  CHECK(source.encoding.statistics->mean[1] == 2014.5);
}

TEST_CASE("a run of an older version keeps the means of rounded numbers", "[data]") {
  const TemporaryFolder folder;
  data::Encoding old;
  const data::Source source =
      input::open(table_of(folder.write("times.csv", seconds())), 0, 1, std::nullopt, nullptr, &old);
  CHECK_FALSE(source.encoding.exact);
  CHECK(source.encoding.statistics->mean == std::vector<double>{1700000000});
  CHECK(source.train->input().dtype == DType::f32);
}

TEST_CASE("numbers collapse in a channel though most of its rows are far from what float32 rounds", "[data]") {
  // More than one chunk of rows; only those of the last one are rounded.
  constexpr int examples = 300'000;
  std::vector<double> numbers;
  for (int i = 0; i < examples; ++i) {
    numbers.push_back(i < examples - 64 ? i % 1000 : 16777216.0 + (i - (examples - 64)));
    numbers.push_back(i % 7);
  }
  const TemporaryFolder folder;
  std::vector<std::string> notes;
  const auto dataset = data::make_dataset(
      data::read_npy(folder.write("x", npy("<f8", "(300000, 2)", raw(numbers)))),
      data::read_npy(folder.write("y", npy("|u1", "(300000,)", std::string(examples, '\0')))), notes);
  const std::vector<data::Collapsed> found = data::collapsed_inputs(*dataset);
  REQUIRE(found.size() == 1);
  CHECK(found[0].channel == 0);
  CHECK(found[0].numbers == 1000 + 64);
  CHECK(found[0].in_float == 1000 + 33);
  // The same pass that measures them says so.
  CHECK(data::measure(*dataset, {}).needs_exact);
  CHECK_FALSE(data::measure(*dataset, {}, false).needs_exact);
}

TEST_CASE("channels whose numbers collapse in float32 are counted", "[data]") {
  std::vector<std::vector<double>> inputs, targets;
  for (int i = 0; i < 32; ++i) {
    inputs.push_back({16777216.0 + i, first_second + i, 0.1 + i, 1e-9 * i});
    targets.push_back({first_second + i});
  }
  spec::DataSpec data = values_of(inputs, targets);
  data.normalize.reset();
  const data::Source source = input::open(data, 0, 1);
  const std::vector<data::Collapsed> found = data::collapsed_inputs(*source.train);
  REQUIRE(found.size() == 2);
  CHECK(found[0].channel == 0);
  CHECK(found[0].numbers == 32);
  CHECK(found[0].in_float == 17);  // an odd one is rounded to a multiple of 4
  CHECK(found[1].channel == 1);
  CHECK(found[1].in_float == 1);
  REQUIRE(data::collapsed_targets(*source.train).size() == 1);
}
