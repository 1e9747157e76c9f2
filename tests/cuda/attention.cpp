// Attention and its gradient.
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/gpu/gpus.h"

using namespace pmaptrain;
using namespace pmaptrain::test;

namespace {

struct HeadSizes {
  Shape q, k;
  bool causal;
};
// Tiles that end in different places, groups of heads, and more elements than a block of threads sums at a time.
const HeadSizes head_sizes[] = {{{2, 5, 2, 3}, {2, 5, 1, 3}, true},    {{1, 33, 1, 33}, {1, 33, 1, 33}, true},
                                {{1, 17, 2, 8}, {1, 40, 2, 8}, false}, {{1, 18, 1, 70}, {1, 18, 1, 70}, true},
                                {{1, 1, 4, 16}, {1, 1, 2, 16}, true},  {{0, 3, 1, 4}, {0, 3, 1, 4}, false}};
const Type draws_key{DType::u32, {2}, {}};
constexpr DType of_attention[] = {DType::bf16, DType::f32, DType::f64};

}  // namespace

TEST_CASE("the GPU's attention adds in the reference's order", "[cuda][device][kernels]") {
  if (!has_gpus()) return;
  for (const HeadSizes& s : head_sizes) {
    for (const DType dtype : of_attention) {
      const Type q{dtype, s.q, {}}, k{dtype, s.k, {}};
      const Type real{dtype == DType::f64 ? DType::f64 : DType::f32, {}, {}};
      check_launches({.op = ops::Attention{s.causal}, .operands = {q, k, k}});
      check_launches({.op = ops::Attention{s.causal},
                      .operands = {q, k, k, draws_key, {DType::i64, {s.q[0]}, {}}, {DType::f32, {}, {}}, real}});
    }
  }
  const Type q{DType::f32, {2, 3, 2, 3}, {}}, k{DType::f32, {2, 3, 1, 3}, {}};
  check_launches(ops::Attention{true}, {q, k, k});
  const Type real{DType::f32, {}, {}};
  check_launches(ops::Attention{true}, {q, k, k, draws_key, {DType::i64, {2}, {}}, real, real});
}

TEST_CASE("the GPU's gradients of attention are added in the reference's order", "[cuda][device][kernels]") {
  if (!has_gpus()) return;
  for (const HeadSizes& s : head_sizes) {
    for (const DType dtype : of_attention) {
      const Type q{dtype, s.q, {}}, k{dtype, s.k, {}};
      const Type lse{dtype == DType::f64 ? DType::f64 : DType::f32, {s.q[0], s.q[1], s.q[2]}, {}};
      const Type rows{DType::i64, {s.q[0]}, {}}, rate{DType::f32, {}, {}}, scale{lse.dtype, {}, {}};
      check_launches({.op = ops::AttentionGrad{s.causal}, .operands = {q, k, k, q, lse, q}});
      check_launches(
          {.op = ops::AttentionGrad{s.causal}, .operands = {q, k, k, q, lse, q, draws_key, rows, rate, scale}});
    }
  }
  const Type q{DType::f32, {2, 2, 1, 2}, {}}, lse{DType::f32, {2, 2, 1}, {}};
  check_launches(ops::AttentionGrad{true}, {q, q, q, q, lse, q, lse});
  const Type real{DType::f32, {}, {}}, rows{DType::i64, {2}, {}};
  for (unsigned choice = 0; choice < 16; ++choice) {  // of what is dropout's
    KernelCase c{ops::AttentionGrad{true}, {q, q, q, q, lse, q, lse, draws_key, rows, real, real}, 3};
    for (unsigned i = 0; i < 11; ++i)
      c.stacked.push_back(i < 7 ? (i + choice) % 2 == 0 : (choice >> (i - 7) & 1U) == 0);
    check_launches(c);
  }
}
