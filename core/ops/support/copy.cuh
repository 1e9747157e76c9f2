// Copies and fills of elements, whatever their type.
#pragma once

#include "core/ops/support/device.cuh"

namespace pmaptrain::ops::device {

// Nine numbers, innermost dimension first; missing dimensions have size 1.
#define PMAPTRAIN_DIMS(name) \
  i64 name##0, i64 name##1, i64 name##2, i64 name##3, i64 name##4, i64 name##5, i64 name##6, i64 name##7, i64 name##8
#define PMAPTRAIN_LIST(name) \
  { name##0, name##1, name##2, name##3, name##4, name##5, name##6, name##7, name##8 }

#define PMAPTRAIN_KERNEL(name, Word)                                                                    \
  extern "C" __global__ void name##_##Word(Word* to, const Word* from, i64 count, PMAPTRAIN_DIMS(size), \
                                           PMAPTRAIN_DIMS(to_stride), PMAPTRAIN_DIMS(from_stride)) {    \
    const i64 sizes[] = PMAPTRAIN_LIST(size), to_strides[] = PMAPTRAIN_LIST(to_stride);                 \
    const i64 from_strides[] = PMAPTRAIN_LIST(from_stride);                                             \
    for_each_index(count, [&](i64 i) {                                                                  \
      i64 a = 0, b = 0;                                                                                 \
      for (int d = 0; d < 9 && i > 0; ++d) {                                                            \
        const i64 index = i % sizes[d];                                                                 \
        i /= sizes[d];                                                                                  \
        a += index * to_strides[d];                                                                     \
        b += index * from_strides[d];                                                                   \
      }                                                                                                 \
      to[a] = from[b];                                                                                  \
    });                                                                                                 \
  }
PMAPTRAIN_WORDS(PMAPTRAIN_KERNEL, copy)
#undef PMAPTRAIN_KERNEL
#undef PMAPTRAIN_LIST
#undef PMAPTRAIN_DIMS

#define PMAPTRAIN_KERNEL(name, Word)                                        \
  extern "C" __global__ void name##_##Word(Word* to, i64 count, i64 bits) { \
    for_each_index(count, [&](i64 i) { to[i] = static_cast<Word>(bits); }); \
  }
PMAPTRAIN_WORDS(PMAPTRAIN_KERNEL, fill)
#undef PMAPTRAIN_KERNEL

}  // namespace pmaptrain::ops::device
