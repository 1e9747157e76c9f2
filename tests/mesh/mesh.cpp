#include "core/mesh/mesh.h"

#include <cstdint>
#include <set>
#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;

namespace {

using Devices = std::vector<std::int64_t>;

const Mesh nested({{"model_replicas", 2}, {"data_shards", 3}});

}  // namespace

TEST_CASE("devices count row-major, so that neighbours differ in the innermost axis", "[mesh]") {
  CHECK(nested.devices() == 6);
  Devices replicas, shards;
  for (std::int64_t device = 0; device < 6; ++device) {
    replicas.push_back(nested.coordinate(device, 0));
    shards.push_back(nested.coordinate(device, 1));
  }
  CHECK(replicas == Devices{0, 0, 0, 1, 1, 1});
  CHECK(shards == Devices{0, 1, 2, 0, 1, 2});
}

TEST_CASE("a mesh without axes is one device", "[mesh]") {
  const Mesh mesh;
  CHECK(mesh.devices() == 1);
  CHECK(mesh.all().empty());
  CHECK(mesh.group(0, {}) == Devices{0});
  CHECK(mesh.to_string({}) == "{}");
}

TEST_CASE("a position is the index of an instance of a value that varies over some axes", "[mesh]") {
  const auto positions = [](AxisSet axes) {
    Devices result;
    for (std::int64_t device = 0; device < nested.devices(); ++device) result.push_back(nested.position(device, axes));
    return result;
  };
  CHECK(positions({}) == Devices{0, 0, 0, 0, 0, 0});
  CHECK(positions(AxisSet::of(0)) == Devices{0, 0, 0, 1, 1, 1});
  CHECK(positions(AxisSet::of(1)) == Devices{0, 1, 2, 0, 1, 2});
  CHECK(positions(nested.all()) == Devices{0, 1, 2, 3, 4, 5});
}

TEST_CASE("the outer and inner axes of three group by their strides", "[mesh]") {
  const Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  const AxisSet outer_and_inner = AxisSet::of(0) | AxisSet::of(2);
  CHECK(mesh.group_size(outer_and_inner) == 4);
  CHECK(mesh.group(3, outer_and_inner) == Devices{2, 3, 8, 9});
  CHECK(mesh.position(9, outer_and_inner) == 3);
}

TEST_CASE("a group holds the devices that agree on every other axis, in device order", "[mesh]") {
  CHECK(nested.group(4, AxisSet::of(1)) == Devices{3, 4, 5});
  CHECK(nested.group(4, AxisSet::of(0)) == Devices{1, 4});
  CHECK(nested.group(4, nested.all()) == Devices{0, 1, 2, 3, 4, 5});
  CHECK(nested.group(4, {}) == Devices{4});
  CHECK(nested.group_size(AxisSet::of(1)) == 3);
}

TEST_CASE("the groups over any axes are a partition of the devices", "[mesh]") {
  for (const AxisSet axes : {AxisSet{}, AxisSet::of(0), AxisSet::of(1), nested.all()}) {
    std::set<Devices> groups;
    for (std::int64_t device = 0; device < nested.devices(); ++device) groups.insert(nested.group(device, axes));
    std::size_t members = 0;
    for (const Devices& group : groups) {
      members += group.size();
      CHECK(static_cast<std::int64_t>(group.size()) == nested.group_size(axes));
    }
    CHECK(members == 6);
  }
}

TEST_CASE("a group over any axes has the devices with equal other coordinates", "[mesh]") {
  const Mesh mesh({{"a", 2}, {"b", 3}, {"c", 2}});
  for (std::uint32_t chosen = 0; chosen < 8; ++chosen) {
    AxisSet axes;
    for (int axis = 0; axis < 3; ++axis) axes = (chosen >> axis & 1) != 0 ? axes | AxisSet::of(axis) : axes;
    const AxisSet others = mesh.all() - axes;
    for (std::int64_t device = 0; device < mesh.devices(); ++device) {
      Devices members;
      for (std::int64_t other = 0; other < mesh.devices(); ++other) {
        if (mesh.position(other, others) == mesh.position(device, others)) members.push_back(other);
      }
      CHECK(mesh.group(device, axes) == members);
    }
  }
}

TEST_CASE("a group is computed without visiting other devices", "[mesh]") {
  // There are 2^50 of them.
  const std::int64_t rows = std::int64_t{1} << 49;
  const Mesh mesh({{"a", rows}, {"b", 2}});
  CHECK(mesh.group(2 * rows - 1, AxisSet::of(1)) == Devices{2 * rows - 2, 2 * rows - 1});
}

TEST_CASE("axes are found by name and print in mesh order", "[mesh]") {
  CHECK(nested.find("data_shards") == 1);
  CHECK_FALSE(nested.find("devices").has_value());
  CHECK(nested.to_string(AxisSet::of(1) | AxisSet::of(0)) == "{model_replicas, data_shards}");
  CHECK(nested.names() == std::vector<std::string>{"model_replicas", "data_shards"});
}

TEST_CASE("sets of axes", "[mesh]") {
  const AxisSet both = AxisSet::first(2);
  CHECK(both.contains(AxisSet::of(1)));
  CHECK_FALSE(AxisSet::of(1).contains(both));
  CHECK((both - AxisSet::of(0)) == AxisSet::of(1));
  CHECK((both & AxisSet::of(1)) == AxisSet::of(1));
  CHECK(AxisSet::first(0).empty());
  CHECK(AxisSet::first(32).contains(31));
}

TEST_CASE("the first device that holds an instance has its position", "[mesh]") {
  const Mesh mesh({{"a", 2}, {"b", 3}, {"c", 4}});
  for (const AxisSet axes : {AxisSet(), AxisSet::of(0), AxisSet::of(1), AxisSet::of(0) | AxisSet::of(2), mesh.all()}) {
    for (std::int64_t position = 0; position < mesh.group_size(axes); ++position) {
      const std::int64_t device = mesh.device_at(position, axes);
      CHECK(mesh.position(device, axes) == position);
      CHECK(mesh.position(device, mesh.all() - axes) == 0);
    }
  }
}
