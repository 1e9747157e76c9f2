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

// Which parts of a mesh a GPU may be given: any sub-box, or only a sub-box that is made of whole blocks (block_of()).
enum class Parts : std::uint8_t { any, whole_blocks };

// Divides the mesh over `gpus` GPUs, outer axes first. Throws Error (usage) if it does not divide over that many; the
// error lists numbers of GPUs over which it does.
Division divide(const Mesh& mesh, int gpus, Parts parts = Parts::any);

// The numbers of GPUs, up to `most`, over which a mesh divides.
std::vector<int> divisors(const Mesh& mesh, int most, Parts parts = Parts::any);

// The logical devices of a block: what a GPU has at least where bits must not depend on the number of GPUs. A mesh is
// cut into at most eight, by itself alone.
Mesh block_of(const Mesh& mesh);

}  // namespace pmaptrain::gpu
