// The order in which a sum over logical devices is added, if several GPUs have the devices.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mesh/mesh.h"
#include "core/runtime/gpu/division.h"

namespace pmaptrain::gpu {

// A sum over a group of devices adds their blocks in a tree (core/mesh/blocks.h). Here the tree is divided into
// subtrees. One GPU adds each subtree.
// The blocks of a group are numbered from 0 in their order. The tree is the same for all groups along the same axes.
struct SumTree {
  struct Subtree {
    IndexRange blocks;
    std::int64_t gpu = 0;   // of the GPUs that have the group, in their order
    std::int64_t slot = 0;  // number of this subtree among those of the GPU
    friend bool operator==(const Subtree&, const Subtree&) = default;
  };
  std::vector<Subtree> subtrees;  // in the order of their blocks
  std::int64_t slots = 1;         // the most subtrees of any GPU

  std::vector<IndexRange> of_gpu(std::int64_t gpu) const;
};

// The subtrees are as large as possible. `blocks` and `gpus` divide the same mesh, and each GPU has whole blocks.
SumTree sum_tree(const Division& blocks, const Division& gpus, AxisSet over);

}  // namespace pmaptrain::gpu
