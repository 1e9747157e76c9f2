// Splits that stay in the memory of devices that have their own. A program gathers its batch there by row number, so
// what is copied for a step are these numbers, the mask and what random ops count by.
#pragma once

#include <functional>

#include "core/runtime/backend.h"
#include "core/setup/setup.h"

namespace pmaptrain::train {

// Chooses the splits that stay: those that fit beside the plan, training first. Changes the programs of these, and says
// what it chose in the notes. Does nothing where devices have no memory of their own.
void keep_data_on_devices(Setup& setup);

// What load_data() holds of the examples while it gives them to the devices.
std::size_t loading_bytes(const Setup& setup);

// Gives the devices the splits that the module's programs gather from, and returns when they are there. `tell` is
// called on the way. Throws Error (data).
void load_data(Module& module, const Setup& setup, const std::function<void(const Working&)>& tell = {});

}  // namespace pmaptrain::train
