// Splits that stay in the memory of devices with memory of their own. A program gathers its batch there by row number,
// so each step copies only row numbers, the mask and the positions for random ops.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// Chooses the splits that stay on the devices, training first: each that fits beside the plan. The programs of these
// splits gather their batches, and notes tell of the choice. If devices have no memory of their own, the setup remains
// as it is, and nothing is planned.
Setup with_data_on_devices(Setup setup);

// The host memory that copy_resident_splits() uses while it copies these splits.
std::size_t loading_bytes(std::span<const ResidentSplit> splits);

// Copies Setup::resident_splits to the devices, and returns when the copies are complete. Calls `tell` to report
// progress. Throws Error (data).
void copy_resident_splits(Module& module, const Setup& setup,
                          const std::function<void(const run::Working&)>& tell = {});

}  // namespace pmaptrain::setup
