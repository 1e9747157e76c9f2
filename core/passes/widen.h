// Keeps f32 where mixed precision would round to bf16 only to cast back to f32.
#pragma once

#include "core/graph/program.h"

namespace pmaptrain {

// Products and sums of bf16 operands whose result is only cast to f32, by the same layer (Origin::scope), get a
// preferred_element_type of f32: they accumulate in f32, and the result is not rounded to bf16. Likewise, an f32 value
// that a layer casts to bf16 and back is not rounded. Under mixed precision this applies to the gradients of
// parameters, the logits, and values that a layer computes for itself; values that one layer passes to the next stay
// bf16. Unlike other passes, this one changes bits. The program must be simplified; the result is simplified.
Program widen(Program program);

}  // namespace pmaptrain
