#include "core/runtime/gpu/sum_tree.h"

#include <algorithm>

#include "core/mesh/blocks.h"

namespace pmaptrain::gpu {
namespace {

// Adds the subtrees below the node of `tree` that has these blocks. `gpu_of[i]` has block i.
void add_subtrees(IndexRange blocks, const std::vector<std::int64_t>& gpu_of, SumTree& tree) {
  const auto first = gpu_of.begin() + blocks.first;
  const std::int64_t gpu = *first;
  if (std::all_of(first, first + blocks.count, [&](std::int64_t each) { return each == gpu; })) {
    const std::int64_t slot = std::ssize(tree.of_gpu(gpu));
    tree.subtrees.push_back({blocks, gpu, slot});
    tree.slots = std::max(tree.slots, slot + 1);
    return;
  }
  const std::int64_t left = left_leaves(blocks.count);
  add_subtrees({blocks.first, left}, gpu_of, tree);
  add_subtrees({blocks.first + left, blocks.count - left}, gpu_of, tree);
}

}  // namespace

std::vector<IndexRange> SumTree::of_gpu(std::int64_t gpu) const {
  std::vector<IndexRange> found;
  for (const Subtree& each : subtrees) {
    if (each.gpu == gpu) found.push_back(each.blocks);
  }
  return found;
}

SumTree sum_tree(const Division& blocks, const Division& gpus, AxisSet over) {
  std::vector<std::int64_t> gpu_of;
  for (std::int64_t i = 0; i < blocks.grid.group_size(over); ++i) {
    const std::int64_t device = blocks.device_of(static_cast<int>(blocks.grid.device_at(i, over)), 0);
    gpu_of.push_back(gpus.grid.position(gpus.gpu_of(device), over));
  }
  SumTree tree;
  add_subtrees({0, std::ssize(gpu_of)}, gpu_of, tree);
  return tree;
}

}  // namespace pmaptrain::gpu
