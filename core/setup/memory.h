// What a plan holds in memory, compared with what there is.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "core/data/batches/batch.h"
#include "core/runtime/backend.h"

namespace pmaptrain::train {

// What one process will hold beside what it holds already, the data among it, in bytes: what the backend needs (Needs);
// under activations also initial values, which are made one at a time, and the slice in which checkpoints leave the
// module; and under kernels also library_bytes. On GPUs it is what one of them holds; all hold as much.
struct MemoryEstimate {
  // What this process holds beside the GPUs: memory that they copy from and to; the snapshot; values that are read or
  // made before the first step.
  struct Host {
    std::size_t pinned = 0, snapshot = 0, passing = 0, total = 0;
    std::optional<std::size_t> available = std::nullopt;
  };
  std::size_t parameters = 0, optimizer = 0, gradients = 0, activations = 0, batch = 0, total = 0;
  // To this process now: the limits of cgroups and the free memory. Of a GPU: its memory; none where it is not known.
  std::optional<std::size_t> available = 0;
  int gpus = 0;  // 0: the memory is this process's
  std::size_t kernels = 0;
  std::size_t programs = 0;                // programs and plans
  std::size_t snapshot = 0;                // from which checkpoints are written while training goes on
  std::size_t workspace = 0;               // of libraries on a GPU
  std::string workspace_planned_for = {};  // the GPU; empty where the workspace is the most that libraries may take
  std::size_t data = 0;                    // splits that stay on devices
  Host host = {};                          // of a run on GPUs
};
// The kernel library's code, of which the pages in use count, and what it generates: 9 MiB with convolutions, 5 MiB
// with dense layers alone.
inline constexpr std::size_t library_bytes = std::size_t{9} << 20;
// Of an evaluation alone.
MemoryEstimate estimate_evaluation(const Needs& needs);

// Throws Error (resource) when the plan needs more than there is: needed, available, the largest item, what would fit.
// `help` says that, where it is not empty.
void check_memory(const MemoryEstimate& estimate, const data::BatchPlan& batch, std::string help = "");

}  // namespace pmaptrain::train
