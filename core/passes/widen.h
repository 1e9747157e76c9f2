// A pass that depends on particular ops, unlike those of core/graph.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Products and sums of bf16 operands whose result is only cast to f32, by the same layer (Origin::scope), get a
// preferred_element_type of f32: they accumulate in f32, so the result is not rounded to bf16 in between. Nor is a
// value of f32 that a layer casts to bf16 only to cast it back. Under mixed precision these are the gradients of
// parameters, the logits, and what a layer computes for itself; what one layer hands to the next stays bf16. This
// changes bits, as the other passes do not. The program must be simplified, and the result is.
Program widen(Program program);

}  // namespace pmaptrain
