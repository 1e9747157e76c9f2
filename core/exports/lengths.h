// Which dimensions of a program's values are the length of the sequences that are predicted.
#pragma once

#include <vector>

#include "core/graph/program.h"
#include "core/model/model.h"

namespace pmaptrain::exports {

// By value and dimension.
using LengthDims = std::vector<std::vector<bool>>;

// Of the prediction program of the model. None where the model takes sequences of one length only, such as that to
// which sequences of different lengths are padded, or no sequences: inputs [length] of tokens, or [length, features].
LengthDims length_dims(const model::Model& model, const Program& program);

}  // namespace pmaptrain::exports
