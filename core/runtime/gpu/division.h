// Divides the logical devices of a mesh over GPUs: each GPU gets a sub-box, that is, a contiguous range along each
// axis. And the order in which a sum over logical devices is added, if several GPUs have the devices.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/mesh/mesh.h"

namespace pmaptrain::gpu {

// Two meshes with the same axes as the divided mesh. `grid` has one device for each GPU, and `local` has the logical
// devices of one GPU: along each axis, the product of their sizes is the size of the divided mesh. GPU i is device i of
// `grid`, and a *local device* is a number in `local`. For example, 4x2 logical devices on two GPUs are a grid of 2x1
// and local devices of 2x2.
struct Division {
  Mesh grid, local;

  int gpus() const { return static_cast<int>(grid.devices()); }
  // `device` is a number in the whole mesh.
  std::int64_t device_of(int gpu, std::int64_t local_device) const;
  int gpu_of(std::int64_t device) const { return place_of(device).first; }
  std::int64_t local_of(std::int64_t device) const { return place_of(device).second; }

 private:
  std::pair<int, std::int64_t> place_of(std::int64_t device) const;
};

// Which parts of a mesh a GPU may get: any sub-box, or only a sub-box that consists of whole blocks (see blocks_of()).
enum class Parts : std::uint8_t { any, whole_blocks };

// How a mesh may be divided.
struct Limits {
  // NOLINTNEXTLINE
  Limits(Parts of_gpu = Parts::any, int of_mesh = 0, int of_job = 1)
      : parts(of_gpu), blocks(of_mesh), processes(of_job) {}
  Parts parts;
  int blocks;  // see blocks_of()
  // Processes have equal numbers of GPUs, which are neighbours. The devices of a process are neighbours
  // (core/mesh/share.h) and a sub-box.
  int processes;
};

// Divides the mesh over `gpus` GPUs, along the outermost axes first. Throws Error (usage) if this is impossible; the
// error lists the possible numbers of GPUs.
Division divide(const Mesh& mesh, int gpus, Limits limits = {});

// The numbers of GPUs, up to `most`, over which the mesh can be divided, in ascending order.
std::vector<int> possible_gpu_counts(const Mesh& mesh, int most, Limits limits = {});

// The *blocks* of a mesh, in the place of GPUs: a mesh is divided into `count` equal sub-boxes of logical devices; 0
// stands for the largest possible number up to eight. So the blocks depend on the mesh and on this number alone. If
// results must not depend on the number of GPUs, each GPU gets whole blocks, no sum over rows and no library call
// crosses the boundary of a block, and the sums of blocks are added in a tree. Throws Error (usage) if `count` does not
// divide the mesh.
Division blocks_of(const Mesh& mesh, int count = 0);

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
