// Inverted dropout, for layers that have it inside.
#pragma once

#include "core/model/layers.h"

namespace pmaptrain::model {

// Makes the layer draw, with the numbers that drop() reads. A rate of 0 does nothing.
void add_dropout(Node& layer, double rate, DType storage);

// In training, if the layer draws: each element of x [B, ...] is kept with probability 1 - rate and divided by it, or
// becomes 0. x has the type of storage. Else x.
Value drop(const LayerCall& call, Value x);

// What an op that drops by itself takes: the key of the layer, the rows of the batch, the rate, and the factor of what
// is kept, in the type `scale`. The layer draws.
std::vector<Value> dropout_operands(const LayerCall& call, DType scale);

}  // namespace pmaptrain::model
