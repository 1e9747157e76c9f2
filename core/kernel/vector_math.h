// exp, log and tanh of f32 arrays with the widest instructions that the machine has.
//
// Within 4 units in the last place of the exact result (tests hold them to libm), for every f32: infinities, NaN and
// subnormal numbers as libm has them. An element's bits depend on the machine and on its value alone: not on where it
// lies or on how many there are, so a range may be cut anywhere. `y` may be `x`.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>

namespace pmaptrain {

void vector_exp(std::size_t n, const float* x, float* y);
void vector_log(std::size_t n, const float* x, float* y);
void vector_tanh(std::size_t n, const float* x, float* y);

}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
