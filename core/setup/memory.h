// The memory that a plan needs, compared with the memory that is available.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/data/batches/batch.h"
#include "core/runtime/backend.h"

namespace pmaptrain::train {

// Bytes that one process will need in addition to the memory that it has already, such as the data. The numbers are
// those of the backend (MemoryNeeds), with these additions: `activations` contains initial values, which are made one
// at a time, and the slice in which checkpoints are read from the module; `kernels` contains library_bytes. On GPUs,
// bytes of one GPU; all GPUs need the same.
struct MemoryEstimate {
  // Bytes of this process in a run on GPUs: memory for copies to and from the GPUs, the snapshot, and values that are
  // read or made before the first step.
  struct Host {
    std::size_t pinned = 0, snapshot = 0, passing = 0, total = 0;
    std::optional<std::size_t> available = std::nullopt;
  };
  std::size_t parameters = 0, optimizer = 0, gradients = 0, activations = 0, batch = 0, total = 0;
  // The bytes available to this process now, from the limits of cgroups and the free memory. On GPUs, the memory of one
  // GPU; none if it is unknown.
  std::optional<std::size_t> available = 0;
  int gpus = 0;  // 0: the memory is that of this process
  std::size_t kernels = 0;
  std::size_t programs = 0;                // programs and plans
  std::size_t snapshot = 0;                // for checkpoints, which are written while training goes on
  std::size_t workspace = 0;               // of libraries on a GPU
  std::string workspace_planned_for = {};  // the GPU; empty if the workspace is an upper bound
  std::size_t data = 0;                    // splits that stay on devices
  Host host = {};                          // of a run on GPUs
};
// What the kernel library (oneDNN) uses for its own code and for the code that it generates: 9 MiB with convolutions, 5
// MiB with dense layers only.
inline constexpr std::size_t library_bytes = std::size_t{9} << 20;
// The estimate for an evaluation without training.
MemoryEstimate estimate_evaluation(const MemoryNeeds& needs);

// Throws Error (resource) if the plan needs more memory than is available. The message has both numbers, the largest
// item, and `help`, which says what would fit; if `help` is empty, a general suggestion.
void check_memory(const MemoryEstimate& estimate, const data::BatchPlan& batch, std::string help = "");

}  // namespace pmaptrain::train
