// The matrix products, convolutions and attention that tests compare with the references on a device. All of them are
// planned for a described GPU, too, so that a shape which a library does not take is found without one.
#pragma once

#include <string>
#include <vector>

#include "core/ops/conv/conv.h"
#include "tests/cuda/kernel_case.h"

namespace pmaptrain::test {

struct NamedCases {
  std::string name;
  std::vector<KernelCase> cases;
};

struct Convolution {
  Shape x, kernel;
  std::vector<std::int64_t> strides;
  ops::Padding padding;
  std::vector<std::int64_t> dilation = {1, 1};
  std::int64_t groups = 1;
};
const std::vector<Convolution>& convolutions();
std::string name_of(const Convolution& c, DType dtype);

// A convolution with a bias, and its gradients.
struct Three {
  KernelCase forward, input_grad, kernel_grad;
};
Three three_of(const Convolution& c, DType dtype, bool relu = false);

// What is the reference's up to rounding: products however they are transposed, with bias and relu; of many rows, and
// of one column; of bf16, with a bias or a result of f32; each convolution with and without relu, and its gradients
// with and without that of a bias; the sum of a bias's gradient over more pixels than one pass of the kernel has.
std::vector<NamedCases> product_and_convolution_cases();
// Of bf16, with a bias of f32, and gradients of kernel and bias in f32.
std::vector<NamedCases> mixed_convolution_cases();
// A product, and a convolution with its gradients.
std::vector<NamedCases> tf32_cases();
// Without padding and groups, so that a library multiplies what the references multiply.
KernelCase product_of_special_values(DType dtype, bool relu);
Three convolution_of_special_values(DType dtype, bool relu);

// Attention in bf16 that a library takes, and its gradients, deterministic or not; on several logical devices too.
struct AttentionCase {
  KernelCase forward, gradient;
};
std::vector<AttentionCase> attention_cases();
// The examples of an attention, its positions, heads and the elements of a head.
AttentionCase attention_of(const Shape& q, std::int64_t keys, bool causal, bool deterministic = false);

// Recurrences, whose products are a library's: on several logical devices too, however they share operands.
std::vector<NamedCases> recurrent_cases();

// All of these.
std::vector<NamedCases> library_cases();

}  // namespace pmaptrain::test
