// Labels as class probabilities, which mixup and CutMix mix.
#pragma once

#include <cstdint>
#include <memory>

#include "core/data/dataset.h"

namespace pmaptrain::data {

// Examples whose labels i32 [] are probabilities f32 [classes]: 1 for the label.
std::shared_ptr<const Dataset> one_hot_labels(std::shared_ptr<const Dataset> labelled, std::int64_t classes);

}  // namespace pmaptrain::data
