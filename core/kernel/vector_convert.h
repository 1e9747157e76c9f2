// Converts arrays between bf16 and f32 with the widest vector instructions of the CPU. Results equal those of the class
// bf16.
#pragma once

#include <cstddef>

#include "core/base/bf16.h"

namespace pmaptrain {

void to_f32(std::size_t n, const bf16* x, float* y);
void to_bf16(std::size_t n, const float* x, bf16* y);

}  // namespace pmaptrain
