// How the logical devices of a mesh divide over GPUs: each has a sub-box of it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mesh/mesh.h"

namespace pmaptrain::gpu {

// The mesh is the product of two meshes with its axes: `grid` of GPUs, and `local` of the logical devices of each. GPUs
// are numbered like the devices of `grid`, and logical devices of a GPU like those of `local`.
struct Division {
  Mesh grid, local;

  int gpus() const { return static_cast<int>(grid.devices()); }
  // The logical device of the whole mesh.
  std::int64_t device_of(int gpu, std::int64_t local_device) const;
  int gpu_of(std::int64_t device) const;
  std::int64_t local_of(std::int64_t device) const;
};

// What a GPU must have of a mesh: any sub-box, or a number of the mesh's blocks.
enum class Parts : std::uint8_t { any, whole_blocks };

// Outer axes are divided first. Throws Error (usage) where the mesh does not divide over so many, which says what
// would.
Division divide(const Mesh& mesh, int gpus, Parts parts = Parts::any);

// The numbers of GPUs, up to `most`, over which a mesh divides.
std::vector<int> divisors(const Mesh& mesh, int most, Parts parts = Parts::any);

// The logical devices of a block: what a GPU has at least where bits must not depend on the number of GPUs. A mesh is
// cut into at most eight, by itself alone.
Mesh block_of(const Mesh& mesh);

}  // namespace pmaptrain::gpu
