// Runs an op's GPU kernel on a device (tests/cuda/gpus.h) and compares it with the op's reference.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/kernel_case.h"

namespace pmaptrain::test {

// By result, of all devices.
std::vector<Bytes> run_on_gpu(const KernelCase& c);

// How far a result may be from the reference's, as a part of its largest element or of 1, where it is not equal to the
// bit. That is so for what a library or generated code computes: a library adds up to some thousand products in an
// order of its own, and CUDA's functions are right to two units in the last place, of a value that a chain then
// enlarges. So 64 units are allowed of what is computed, which in bf16 is f32: rounding it changes one unit of bf16 at
// most, two where a chain rounds twice.
double rounding_of(DType dtype);

// The first element that is further than that from what is expected, as text; empty where there is none. What is not
// finite has to be the same.
std::string beyond_rounding(const std::vector<Type>& types, const std::vector<Bytes>& found,
                            const std::vector<Bytes>& expected);

// CHECKs the case on a device: to the bit where our own kernels carry it out and no tolerance (a relative one) is
// given, and up to rounding else.
void check_on_gpu(const KernelCase& c, const std::vector<Bytes>& expected, double tolerance = 0);
// With random values.
void check_on_gpu(KernelCase c);

}  // namespace pmaptrain::test
