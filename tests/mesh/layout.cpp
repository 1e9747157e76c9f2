// Where the elements of divided arrays are, against a search through all devices and elements.
#include "core/mesh/layout.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/mesh/random_layouts.h"

namespace pmaptrain {
namespace {

const Mesh mesh({{"data", 2}, {"model", 3}, {"shards", 2}});
constexpr int data = 0, model = 1, shards = 2;

TEST_CASE("an array is divided into ranges of its dimensions, and the last ones are padded", "[mesh]") {
  CHECK(local_shape({{80, 96}, {{}, {model}}}, mesh) == Shape{80, 32});
  CHECK(local_shape({{50257, 8}, {{shards, model}}}, mesh) == Shape{8377, 8});
  CHECK(local_shape({{5}}, mesh) == Shape{5});
  CHECK(local_shape({{}}, mesh) == Shape{});
  CHECK(to_string(Layout{{80, 96}, {{}, {model}}}, mesh) == "[80,96{model}]");
  CHECK(to_string(Layout{{6, 4}, {{shards, data}}}, mesh) == "[6{shards, data},4]");
  CHECK(Layout{{6, 4}, {{shards, data}}}.axes() == (AxisSet::of(data) | AxisSet::of(shards)));
  CHECK(layout_error({{6, 4}, {{shards, data}, {model}}}, mesh).empty());
  CHECK(layout_error({{6, 4}, {{data}, {data}}}, mesh) == "the axis 'data' divides it twice");
  CHECK(layout_error({{6}, {{}, {data}}}, mesh) == "it divides more dimensions than the array has");
}

TEST_CASE("columns of a matrix are one copy of equal runs for each position", "[mesh]") {
  const Layout columns{{4, 6}, {{}, {model}}};
  CHECK(copies_of(columns, mesh, 0, 24) ==
        std::vector<StridedCopy>{{0, 0, 0, 2, 4, 6, 2}, {2, 0, 2, 2, 4, 6, 2}, {4, 0, 4, 2, 4, 6, 2}});
  // A range that begins and ends in the middle of rows.
  CHECK(copies_of(columns, mesh, 3, 8) ==
        std::vector<StridedCopy>{
            {2, 1, 0, 1, 1, 0}, {4, 0, 1, 2, 1, 0}, {0, 2, 3, 2, 1, 0}, {2, 2, 5, 2, 1, 0}, {4, 2, 7, 1, 1, 0}});
  // Rows lie one after another.
  CHECK(copies_of({{6, 4}, {{model}}}, mesh, 0, 24) ==
        std::vector<StridedCopy>{{0, 0, 0, 8}, {2, 0, 8, 8}, {4, 0, 16, 8}});
}

TEST_CASE("columns with padding are one copy for each position, too", "[mesh]") {
  const std::vector<StridedCopy> copies = copies_of({{50000, 5}, {{}, {model}}}, mesh, 0, 250000);
  CHECK(copies ==
        std::vector<StridedCopy>{{0, 0, 0, 2, 50000, 5, 2}, {2, 0, 2, 2, 50000, 5, 2}, {4, 0, 4, 1, 50000, 5, 2}});
  CHECK(copies_of({{0, 5}, {{}, {model}}}, mesh, 0, 0).empty());
}

TEST_CASE("each element of a range is in one copy, where its device has it", "[mesh]") {
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Layout layout = test::random_layout({data, model, shards}, seed);
    INFO("seed " << seed << ": " << to_string(layout, mesh));
    const AxisSet axes = layout.axes();
    std::map<std::int64_t, std::pair<std::int64_t, std::int64_t>> places;  // by element: its first device, and where
    for (std::int64_t position = 0; position < mesh.group_size(axes); ++position) {
      const std::int64_t device = mesh.device_at(position, axes);
      for (std::int64_t local = 0; local < numel(local_shape(layout, mesh)); ++local) {
        const std::int64_t logical = test::logical_of(layout, mesh, device, local);
        if (logical < 0) continue;
        const bool is_new = places.emplace(logical, std::pair(device, local)).second;
        CHECK(is_new);
      }
    }
    const std::int64_t size = numel(layout.logical);
    REQUIRE(std::ssize(places) == size);
    const std::int64_t begin = seed % size, count = (size - begin + seed % 3) / (1 + seed % 3);
    std::vector<bool> seen(static_cast<std::size_t>(count), false);
    for (const StridedCopy& copy : copies_of(layout, mesh, begin, count)) {
      for (std::int64_t i = 0; i < copy.times * copy.run; ++i) {
        const std::int64_t at = copy.logical + i / copy.run * copy.stride + i % copy.run;
        REQUIRE(at < count);
        const bool right = places.at(begin + at) ==
                           std::pair(copy.device, copy.local + i / copy.run * copy.local_stride + i % copy.run);
        REQUIRE(right);
        REQUIRE_FALSE(seen[static_cast<std::size_t>(at)]);
        seen[static_cast<std::size_t>(at)] = true;
      }
    }
    CHECK(std::count(seen.begin(), seen.end(), true) == count);
  }
}

}  // namespace
}  // namespace pmaptrain
