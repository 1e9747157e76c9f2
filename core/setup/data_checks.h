// Checks of the examples of a split against the model, which require reading them.
#pragma once

#include <string>
#include <vector>

#include "core/data/dataset.h"
#include "core/model/model.h"

namespace pmaptrain::setup {

// Throws Error (data), placed at the source of the data in the config, if the loss does not accept the targets of
// `split`: labels out of range, or all ignored, invalid class probabilities, or numbers outside of [0, 1] for
// sigmoid_cross_entropy. Reads the targets up to the first invalid one. `empty_folders` (data::Source) are named where
// they are classes too many.
void check_targets(const model::Model& model, const data::Dataset& split, const Place& source,
                   const std::vector<std::string>& empty_folders = {});

// Throws Error (data), placed at the source, if the model takes tokens and an input of `split` is outside of its table.
void check_tokens(const model::Model& model, const data::Dataset& split, const Place& source);

// A warning of classes that no label is, below others that occur; else empty. `is_limited`: training takes a part
// alone.
std::string unused_classes(const model::Model& model, const data::Source& source, bool is_limited);

}  // namespace pmaptrain::setup
