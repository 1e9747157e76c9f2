#include "app/data_sizes.h"

#include <algorithm>
#include <cmath>

namespace pmaptrain::app {

std::int64_t devices_for(std::int64_t examples) {
  std::int64_t count = most_devices;
  while (count > 1 && 2 * count > examples) count /= 2;
  return count;
}

std::int64_t batch_size_for(std::int64_t examples) {
  std::int64_t batch = 128;
  while (batch > devices_for(examples) && batch * 8 > examples) batch /= 2;
  return batch;
}

std::int64_t epochs_for(std::int64_t examples, bool images) {
  const double steps = std::max(1.0, static_cast<double>(examples) / static_cast<double>(batch_size_for(examples)));
  return std::clamp<std::int64_t>(std::llround(2000 / steps), 10, images ? 30 : 100);
}

}  // namespace pmaptrain::app
