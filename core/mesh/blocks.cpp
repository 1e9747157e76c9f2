#include "core/mesh/blocks.h"

#include <algorithm>
#include <bit>

namespace pmaptrain {
namespace {

// Adds the subtrees below the node that has these leaves.
void add_subtrees(IndexRange leaves, std::span<const int> owners, std::vector<Subtree>& found) {
  const std::span<const int> own =
      owners.subspan(static_cast<std::size_t>(leaves.first), static_cast<std::size_t>(leaves.count));
  if (std::all_of(own.begin(), own.end(), [&](int each) { return each == own.front(); })) {
    return found.push_back({leaves, own.front()});
  }
  const std::int64_t left = left_leaves(leaves.count);
  add_subtrees({leaves.first, left}, owners, found);
  add_subtrees({leaves.first + left, leaves.count - left}, owners, found);
}

}  // namespace

std::vector<IndexRange> Blocks::runs(AxisSet axes, std::int64_t span) const {
  std::vector<IndexRange> runs;
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < mesh_->group_size(axes); ++i) {
    const std::int64_t block = of_instance(i, axes);
    if (i % span == 0 || block != last) runs.push_back({i, 0});
    runs.back().count += 1;
    last = block;
  }
  return runs;
}

std::vector<TreeNode> leaves_of(std::span<const std::int64_t> blocks) {
  std::vector<TreeNode> leaves;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (i == 0 || blocks[i] != blocks[i - 1]) leaves.push_back({0, 1});
    ++leaves.back().operands;
  }
  return leaves;
}

std::int64_t left_leaves(std::int64_t leaves) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(leaves - 1)));
}

std::vector<Subtree> subtrees_of(std::span<const int> owners) {
  std::vector<Subtree> found;
  add_subtrees({0, std::ssize(owners)}, owners, found);
  return found;
}

int tree_depth(std::int64_t leaves) {
  return leaves > 1 ? static_cast<int>(std::bit_width(static_cast<std::uint64_t>(leaves - 1))) : 0;
}

}  // namespace pmaptrain
