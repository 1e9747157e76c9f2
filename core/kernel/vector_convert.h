// Arrays of bf16 as f32 and back, with the widest vector instructions of the CPU. The bits are those of the class bf16.
#pragma once

#include <cstddef>

#include "core/base/bf16.h"

namespace pmaptrain {

void to_f32(std::size_t n, const bf16* x, float* y);
void to_bf16(std::size_t n, const float* x, bf16* y);

}  // namespace pmaptrain
