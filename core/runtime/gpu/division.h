// Divides the logical devices of a mesh over GPUs: each GPU gets a sub-box, that is, a contiguous range along each
// axis.
#pragma once

#include <cstdint>
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
  int gpu_of(std::int64_t device) const;
  std::int64_t local_of(std::int64_t device) const;
};

// Which parts of a mesh a GPU may get: any sub-box, or only a sub-box that consists of whole blocks (see blocks_of()).
enum class Parts : std::uint8_t { any, whole_blocks };

// Divides the mesh over `gpus` GPUs, along the outermost axes first. Throws Error (usage) if this is impossible; the
// error lists the possible numbers of GPUs.
Division divide(const Mesh& mesh, int gpus, Parts parts = Parts::any);

// The numbers of GPUs, up to `most`, over which the mesh can be divided, in ascending order.
std::vector<int> possible_gpu_counts(const Mesh& mesh, int most, Parts parts = Parts::any);

// The *blocks* of a mesh, in the place of GPUs: a mesh is divided into at most eight equal sub-boxes of logical
// devices, in a way that depends only on the mesh. If results must not depend on the number of GPUs, each GPU gets
// whole blocks, no sum over rows and no library call crosses the boundary of a block, and the sums of blocks are added
// in a tree.
Division blocks_of(const Mesh& mesh);

}  // namespace pmaptrain::gpu
