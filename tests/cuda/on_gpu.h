// Runs an op's GPU kernel on a device (tests/gpu/gpus.h) and compares it with the op's reference.
#pragma once

#include <string>
#include <vector>

#include "tests/cuda/kernel_case.h"

namespace pmaptrain::test {

// By result, of all devices.
std::vector<Bytes> run_on_gpu(const KernelCase& c);

// How far a result of a library or of generated code may be from the reference's, as a part of its largest element or
// of 1. A library adds up to some thousand products in an order of its own, and CUDA's functions are right to two units
// in the last place, of a value that a chain then enlarges: 64 units are allowed. What is stored as bf16 is computed in
// f32, of which such an error changes the rounding by one unit of bf16; two are allowed, as a chain rounds several
// times.
double rounding_of(DType dtype);

// The first element that is further than that from what is expected, as text; empty where there is none. What is not
// finite has to be the same.
std::string beyond_rounding(const std::vector<Type>& types, const std::vector<Bytes>& found,
                            const std::vector<Bytes>& expected);

// CHECKs the case on a device: to the bit where our own kernels carry it out and no tolerance (a relative one) is
// given, and up to rounding else. What fails, or throws, is reported with its shapes, and the test goes on.
void check_on_gpu(const KernelCase& c, const std::vector<Bytes>& expected, double tolerance = 0);
// With random values.
void check_on_gpu(KernelCase c);

}  // namespace pmaptrain::test
