// Splits that stay in the memory of devices with memory of their own. A program gathers its batch there by row number,
// so each step copies only row numbers, the mask and the positions for random ops.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Chooses the splits that stay on the devices, training first: each that fits beside the plan. Changes the programs of
// these splits, and adds notes about the choice. Does nothing if devices have no memory of their own.
void keep_data_on_devices(Setup& setup);

// The host memory that copy_resident_splits() uses while it copies these splits.
std::size_t loading_bytes(std::span<const ResidentSplit> splits);

// Copies Setup::resident_splits to the devices, and returns when the copies are complete. Calls `tell` to report
// progress. Throws Error (data).
void copy_resident_splits(Module& module, const Setup& setup, const std::function<void(const Working&)>& tell = {});

}  // namespace pmaptrain::train
