// CUDA C++ text made machine code by NVRTC, which needs no GPU.
#pragma once

#include <string>

#include "core/runtime/cuda/code_cache.h"

namespace pmaptrain::cuda {

// Code for a GPU of this compute capability (90): machine code, or PTX where the compiler is older than the GPU.
// Arithmetic is not contracted, as everywhere in the project. Throws Error (failed) with the compiler's messages.
std::string compile(const std::string& text, int compute_capability, const CodeCache& cache);

}  // namespace pmaptrain::cuda
