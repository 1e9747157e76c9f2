// How many devices, examples a step and epochs a config has that init writes, by the training examples.
#pragma once

#include <cstdint>

namespace pmaptrain::app {

inline constexpr std::int64_t most_devices = 8;

// A power of 2, so few that a batch is at most half of the examples where there are two.
std::int64_t devices_for(std::int64_t examples);

// A power of 2 from the number of devices on, so that it divides over them, and at least 8 steps an epoch where there
// are enough examples.
std::int64_t batch_size_for(std::int64_t examples);

// About 2,000 steps, and no fewer than 10 epochs; of images, which take longer, no more than 30.
std::int64_t epochs_for(std::int64_t examples, bool images);

}  // namespace pmaptrain::app
