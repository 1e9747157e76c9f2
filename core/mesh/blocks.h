// Blocks divide the logical devices of a mesh into runs of neighbours of equal length. They fix the order of sums: a
// sum over devices first adds within each block, in device order, and then adds the sums of the blocks in a binary
// tree. So the bits of a sum depend on the number of blocks, and not on how many processes or GPUs carry them.
#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "core/mesh/mesh.h"

namespace pmaptrain {

class Blocks {
 public:
  // `count` must divide the number of devices of the mesh.
  explicit Blocks(const Mesh& mesh, std::int64_t count = 1) : mesh_(&mesh), each_(mesh.devices() / count) {}

  std::int64_t of_device(std::int64_t device) const { return device / each_; }

  // The block of an instance of a value that varies over `axes`. Devices of several blocks may hold the instance; it
  // belongs to the block of the first one. So all copies of a sum are added in the same order.
  std::int64_t of_instance(std::int64_t instance, AxisSet axes) const {
    return of_device(mesh_->device_at(instance, axes));
  }

  // The instances along `axes` as runs of neighbours that belong to one block and lie in one span of `span` instances.
  std::vector<IndexRange> runs(AxisSet axes, std::int64_t span) const;

 private:
  const Mesh* mesh_;
  std::int64_t each_;
};

// A node of a tree of blocks whose sum is added to others: the sum, in order, of `operands` operands. Below it are
// `leaves` blocks.
struct TreeNode {
  std::int64_t operands = 1, leaves = 1;
  friend auto operator<=>(const TreeNode&, const TreeNode&) = default;
};

// The leaves of a tree, if `blocks` are the blocks of its operands, in ascending order.
std::vector<TreeNode> leaves_of(std::span<const std::int64_t> blocks);

// The tree in which the sums of `leaves` blocks are added: its left child has as many leaves as the largest power of
// two below `leaves`, and so on in each child. `leaves` must be at least 2.
std::int64_t left_leaves(std::int64_t leaves);

// A node of the tree over `leaves`, with all that is below it, which one rank adds up.
struct Subtree {
  IndexRange leaves;
  int owner = 0;
  friend bool operator==(const Subtree&, const Subtree&) = default;
};

// The largest subtrees whose leaves have one owner, from left to right. `owners` are the owners of the leaves.
std::vector<Subtree> subtrees_of(std::span<const int> owners);

// The same tree can be added from left to right: append the sum of the next node to a list, and then replace the last
// two sums of the list by their sum until it has this many. `end` is the number of leaves up to the end of the node, of
// `leaves` leaves of the tree.
inline int sums_kept(std::int64_t end, std::int64_t leaves) {
  return end == leaves ? 1 : std::popcount(static_cast<std::uint64_t>(end));
}

// The number of sums that must be kept at the same time to add up a tree from left to right, without the result.
int tree_depth(std::int64_t leaves);

}  // namespace pmaptrain
