// Layers through which a position of a sequence sees those after it.
#pragma once

#include <string>
#include <vector>

#include "core/layers/layer.h"
#include "core/setup/setup.h"

namespace pmaptrain::setup {

// The first layer that lets a position see those after it; null if there is none. Of the layers that a model of
// sequences may have, only some read other positions.
const layers::Layer* first_that_looks_ahead(const std::vector<layers::Layer>& layers);

// Appends a sentence where each position of a text is to predict the token after it, and a layer shows it that token.
void add_seen_targets(const Setup& setup, std::vector<std::string>& out);

}  // namespace pmaptrain::setup
