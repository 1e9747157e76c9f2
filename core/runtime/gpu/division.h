// Divides the logical devices of a mesh over GPUs: each GPU gets a sub-box of the mesh.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mesh/mesh.h"

namespace pmaptrain::gpu {

// Factors a mesh into two meshes with the same axes: `grid`, of GPUs, and `local`, of the logical devices on each GPU.
// GPUs are numbered like the devices of `grid`, and the devices on a GPU like those of `local`.
struct Division {
  Mesh grid, local;

  int gpus() const { return static_cast<int>(grid.devices()); }
  // The number, in the whole mesh, of a logical device on a GPU.
  std::int64_t device_of(int gpu, std::int64_t local_device) const;
  int gpu_of(std::int64_t device) const;
  std::int64_t local_of(std::int64_t device) const;
};

// The parts of a mesh that a GPU may get: any sub-box, or only sub-boxes that consist of whole blocks (see block_of()).
enum class Parts : std::uint8_t { any, whole_blocks };

// Divides the mesh over `gpus` GPUs, outer axes first. Throws Error (usage) if this is impossible; the error lists the
// possible numbers of GPUs.
Division divide(const Mesh& mesh, int gpus, Parts parts = Parts::any);

// The numbers of GPUs, up to `most`, over which a mesh divides.
std::vector<int> divisors(const Mesh& mesh, int most, Parts parts = Parts::any);

// The shape of a block of logical devices. A mesh has at most eight blocks. If results must not depend on the number of
// GPUs, each GPU gets whole blocks. The division into blocks depends only on the mesh.
Mesh block_of(const Mesh& mesh);

}  // namespace pmaptrain::gpu
