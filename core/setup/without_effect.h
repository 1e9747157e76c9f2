// Keys that are valid and do not have the effect for which they are written.
#pragma once

#include <string>
#include <vector>

#include "core/setup/setup.h"

namespace pmaptrain::setup {

// A warning if train.eval_every is given, and there is nothing to evaluate on.
std::vector<std::string> unused_keys(const data::Source& source, const spec::TrainSpec& train);

// A warning for each boundary, or end of a warm-up, that the schedule of the learning rate does not reach in the run.
std::vector<std::string> unreached_boundaries(const Setup& setup);

// A note if early stopping finds the best model, and no checkpoint keeps it; else empty.
std::string best_model_not_kept(const spec::TrainSpec& train);

}  // namespace pmaptrain::setup
