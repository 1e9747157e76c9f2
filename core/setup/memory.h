// The memory that a plan needs, compared with the memory that is available.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/input/batches/batch.h"
#include "core/runtime/backend.h"

namespace pmaptrain::setup {

// Bytes that one process will need in addition to the memory that it has already, such as the data. The numbers are
// those of the backend (MemoryNeeds), with these additions: `activations` contains initial values, which are made one
// at a time, and the slice in which checkpoints are read from the module; `kernels` contains library_bytes and `code`.
// On GPUs, bytes of one GPU; all GPUs need the same.
struct MemoryEstimate : MemoryBytes {
  // Bytes of this process in a run on GPUs: memory for copies to and from the GPUs, the snapshot, and values that are
  // read or made before the first step.
  struct Host {
    std::size_t pinned = 0, snapshot = 0, passing = 0;
    std::optional<std::size_t> available = std::nullopt;
    std::size_t total() const;
  };
  // The bytes available to this process now, from the limits of cgroups and the free memory. On GPUs, the memory of one
  // GPU; none if it is unknown.
  std::optional<std::size_t> available = 0;
  int gpus = 0;                            // 0: the memory is that of this process
  std::string workspace_planned_for = {};  // the GPU; empty if the workspace is an upper bound
  Host host = {};                          // of a run on GPUs
};

// A row of a report of memory.
struct MemoryRow {
  std::string key;         // in JSON
  std::string in_message;  // "optimizer state"; empty: errors do not name it
  std::string in_table;    // "gradients, of each piece of the batch"; empty: tables have no such row
  std::size_t bytes = 0;
};
// What the process needs memory for, or each GPU, in order; and what the process needs beside its GPUs.
std::vector<MemoryRow> rows_of(const MemoryEstimate& estimate);
std::vector<MemoryRow> rows_of(const MemoryEstimate::Host& host);

// What the kernel library (oneDNN) uses for its own code and for the code that it generates: 9 MiB with convolutions, 5
// MiB with dense layers only. MemoryNeeds::code counts what it generates for each of many matrix products besides.
inline constexpr std::size_t library_bytes = std::size_t{9} << 20;
// The estimate for an evaluation without training.
MemoryEstimate estimate_evaluation(const MemoryNeeds& needs);

// Throws Error (resource) if the plan needs more memory than is available. The message has both numbers, the largest
// item, and `help`, which says what would fit; if `help` is empty, a general suggestion.
void check_memory(const MemoryEstimate& estimate, const BatchPlan& batch, std::string help = "");

}  // namespace pmaptrain::setup
