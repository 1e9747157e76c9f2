// Computes philox4x32 (core/base/philox.h) with the widest vector instructions of the CPU, bit for bit.
#pragma once

#ifndef PMAPTRAIN_REFERENCE_KERNELS

#include <cstddef>
#include <cstdint>

#include "core/base/philox.h"

namespace pmaptrain {

// first[i] and second[i] are words 0 and 1 of philox4x32(key, {c0[i], c1[i], c2[i], 0}), for n counters.
void vector_philox(PhiloxKey key, std::size_t n, const std::uint32_t* c0, const std::uint32_t* c1,
                   const std::uint32_t* c2, std::uint32_t* first, std::uint32_t* second);

}  // namespace pmaptrain

#endif  // PMAPTRAIN_REFERENCE_KERNELS
