// How the examples of a data set are divided into batches, and a batch into the rows of devices.
#pragma once

#include <algorithm>
#include <cstdint>

namespace pmaptrain {

struct BatchPlan {
  std::int64_t dataset = 0;  // examples of the dataset
  std::int64_t global = 0;   // examples of a full batch
  std::int64_t devices = 1;
  std::int64_t rows_per_device = 0;  // including padding; a multiple of microbatches
  std::int64_t microbatches = 1;
  std::int64_t steps_per_epoch = 0;
  std::int64_t examples_per_epoch = 0;  // in batches
  std::int64_t skipped_per_epoch = 0;   // examples in no batch
  std::int64_t padded_per_epoch = 0;    // padding rows

  std::int64_t rows() const { return devices * rows_per_device; }
  std::int64_t rows_at_once() const { return rows() / microbatches; }
  // Examples in batch `step` of an epoch (0 <= step < steps_per_epoch): fewer than `global` if the last one is short.
  std::int64_t examples_in(std::int64_t step) const { return std::min(global, examples_per_epoch - step * global); }
  friend bool operator==(const BatchPlan&, const BatchPlan&) = default;
};

}  // namespace pmaptrain
