#include "core/mesh/blocks.h"

#include <cstdint>
#include <vector>

#include "tests/catch.h"

using namespace pmaptrain;

namespace {

const Mesh two_by_three({{"replicas", 2}, {"shards", 3}});

}  // namespace

TEST_CASE("blocks are runs of neighbouring devices of equal length", "[mesh]") {
  const Blocks blocks(two_by_three, 3);
  std::vector<std::int64_t> of_devices;
  for (std::int64_t device = 0; device < 6; ++device) of_devices.push_back(blocks.of_device(device));
  CHECK(of_devices == std::vector<std::int64_t>{0, 0, 1, 1, 2, 2});
}

TEST_CASE("an instance that several devices hold belongs to the block of the first of them", "[mesh]") {
  const Blocks blocks(two_by_three, 3);
  const AxisSet shards = AxisSet::of(1);
  CHECK(blocks.of_instance(1, shards) == 0);  // devices 1 and 4
  CHECK(blocks.of_instance(2, shards) == 1);  // devices 2 and 5
  CHECK(blocks.runs(shards, 3) == std::vector<IndexRange>{{0, 2}, {2, 1}});
}

TEST_CASE("runs of instances end at the bounds of blocks and of spans", "[mesh]") {
  CHECK(Blocks(two_by_three, 1).runs(two_by_three.all(), 6) == std::vector<IndexRange>{{0, 6}});
  CHECK(Blocks(two_by_three, 1).runs(two_by_three.all(), 3) == std::vector<IndexRange>{{0, 3}, {3, 3}});
  CHECK(Blocks(two_by_three, 3).runs(two_by_three.all(), 3) == std::vector<IndexRange>{{0, 2}, {2, 1}, {3, 1}, {4, 2}});
  CHECK(Blocks(two_by_three, 2).runs({}, 1) == std::vector<IndexRange>{{0, 1}});
}

TEST_CASE("the left child of a tree of blocks has a power of two of leaves", "[mesh]") {
  CHECK(left_leaves(2) == 1);
  CHECK(left_leaves(3) == 2);
  CHECK(left_leaves(4) == 2);
  CHECK(left_leaves(5) == 4);
  CHECK(left_leaves(8) == 4);
  CHECK(tree_depth(1) == 0);
  CHECK(tree_depth(2) == 1);
  CHECK(tree_depth(5) == 3);
  CHECK(tree_depth(8) == 3);
}

TEST_CASE("a rank adds the largest subtrees whose blocks it has", "[mesh]") {
  const auto subtrees = [](const std::vector<int>& owners) { return subtrees_of(owners); };
  CHECK(subtrees({0}) == std::vector<Subtree>{{{0, 1}, 0}});
  CHECK(subtrees({0, 0, 1, 1}) == std::vector<Subtree>{{{0, 2}, 0}, {{2, 2}, 1}});
  CHECK(subtrees({0, 0, 0, 1}) == std::vector<Subtree>{{{0, 2}, 0}, {{2, 1}, 0}, {{3, 1}, 1}});
  CHECK(subtrees({0, 0, 0, 0, 1, 1}) == std::vector<Subtree>{{{0, 4}, 0}, {{4, 2}, 1}});
  CHECK(subtrees({0, 1, 1, 1, 1}) == std::vector<Subtree>{{{0, 1}, 0}, {{1, 1}, 1}, {{2, 2}, 1}, {{4, 1}, 1}});
}

TEST_CASE("a tree that is added from left to right keeps the sums of its left children alone", "[mesh]") {
  // A sum is the range of the leaves that it adds. All must be nodes of the tree.
  for (std::int64_t leaves = 1; leaves <= 70; ++leaves) {
    std::vector<IndexRange> kept;
    for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
      kept.push_back({leaf, 1});
      while (std::ssize(kept) > sums_kept(leaf + 1, leaves)) {
        const IndexRange right = kept.back();
        kept.pop_back();
        kept.back().count += right.count;
        REQUIRE(kept.back().count - right.count == left_leaves(kept.back().count));
      }
    }
    CHECK(kept == std::vector<IndexRange>{{0, leaves}});
  }
}
