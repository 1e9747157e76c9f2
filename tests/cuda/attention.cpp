// Attention and its gradient.
#include "core/kernel/gpu_budget.h"
#include "core/ops/all.h"
#include "core/ops/list.h"
#include "tests/catch.h"
#include "tests/cuda/kernel_case.h"
#include "tests/cuda/library_cases.h"
#include "tests/cuda/on_gpu.h"
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
// Of tensor cores: one tile that is not full, several, rows of one warp, groups of heads, and either width of a tile.
const HeadSizes tile_sizes[] = {{{2, 5, 2, 8}, {2, 5, 1, 8}, true},
                                {{1, 70, 1, 64}, {1, 70, 1, 64}, true},
                                {{1, 130, 2, 24}, {1, 66, 1, 24}, false},
                                {{1, 65, 1, 72}, {1, 65, 1, 72}, true},
                                {{1, 17, 2, 128}, {1, 80, 2, 128}, false}};
const Type draws_key{DType::u32, {2}, {}};

}  // namespace

DEVICE_TEST_CASE("the GPU's attention adds in the reference's order", "[cuda][kernels]") {
  for (const HeadSizes& s : head_sizes) {
    for (const DType dtype : floating_types) {
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

DEVICE_TEST_CASE("the GPU's attention of some of the heads drops what the reference drops", "[cuda][kernels]") {
  for (const DType dtype : floating_types) {
    for (const DType index : {DType::i32, DType::i64}) {
      const Type q{dtype, {2, 3, 2, 8}, {}}, k{dtype, {2, 3, 1, 8}, {}}, rows{DType::i64, {2}, {}};
      const Type lse{dtype == DType::f64 ? DType::f64 : DType::f32, {2, 3, 2}, {}};
      const Type rate{DType::f32, {}, {}}, scale{lse.dtype, {}, {}}, offset{index, {}, {}};
      const std::vector<Type> forward{q, k, k, draws_key, rows, rate, scale, offset};
      const std::vector<Type> backward{q, k, k, q, lse, q, draws_key, rows, rate, scale, offset};
      for (const bool shared : {false, true}) {
        KernelCase of_op{ops::Attention{true, true}, forward, 3},
            of_gradient{ops::AttentionGrad{true, true}, backward, 3};
        of_op.stacked.assign(forward.size(), true);
        of_gradient.stacked.assign(backward.size(), true);
        of_op.stacked.back() = of_gradient.stacked.back() = !shared;
        of_op.complete(7);
        check_launches(of_op);
        // Gradients of what the op itself gave: probabilities are at most 1.
        const std::vector<Bytes> results = run_reference(of_op);
        of_gradient.values = {of_op.values[0], of_op.values[1], of_op.values[2], results[0], results[1], {}};
        for (std::size_t i = 3; i < of_op.values.size(); ++i) of_gradient.values.push_back(of_op.values[i]);
        check_launches(of_gradient);
      }
    }
  }
}

DEVICE_TEST_CASE("the GPU's gradients of attention are added in the reference's order", "[cuda][kernels]") {
  for (const HeadSizes& s : head_sizes) {
    for (const DType dtype : floating_types) {
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

DEVICE_TEST_CASE("attention in bf16 multiplies on tensor cores, where operands are read 16 bytes at once",
                 "[cuda][kernels]") {
  const Type draws_rate{DType::f32, {}, {}};
  for (const HeadSizes& s : tile_sizes) {
    const Type q{DType::bf16, s.q, {}}, k{DType::bf16, s.k, {}}, lse{DType::f32, {s.q[0], s.q[1], s.q[2]}, {}};
    const Type rows{DType::i64, {s.q[0]}, {}};
    for (const bool drops : {false, true}) {
      std::vector<Type> forward{q, k, k}, backward{q, k, k, q, lse, q};
      for (std::vector<Type>* const operands : {&forward, &backward}) {
        if (drops) operands->insert(operands->end(), {draws_key, rows, draws_rate, draws_rate});
      }
      KernelCase of_op{.op = ops::Attention{s.causal}, .operands = forward};
      of_op.complete(7);
      CHECK(make_gpu_kernel(of_op.op, of_op.request()).is_on_tensor_cores());
      check_launches(of_op);
      // Gradients of what the op itself gave: probabilities are at most 1.
      const std::vector<Bytes> results = run_reference(of_op);
      KernelCase of_gradient{.op = ops::AttentionGrad{s.causal}, .operands = backward};
      of_gradient.values = {of_op.values[0], of_op.values[1], of_op.values[2], results[0], results[1], {}};
      for (std::size_t i = 3; drops && i < of_op.values.size(); ++i) of_gradient.values.push_back(of_op.values[i]);
      check_launches(of_gradient);
    }
  }
  const Type q{DType::bf16, {2, 3, 2, 8}, {}}, k{DType::bf16, {2, 3, 1, 8}, {}};
  check_launches(ops::Attention{true}, {q, k, k});
}

DEVICE_TEST_CASE("a GPU's attention in bf16 by a library, and its gradients, are the reference's up to rounding",
                 "[cuda][kernels][libraries]") {
  for (AttentionCase c : attention_cases()) {
    c.forward.complete(7);
    CHECK(is_by_library(c.forward));
    check_on_gpu(c.forward, run_reference(c.forward));
    // Gradients of what the op itself gave: probabilities are at most 1.
    c.gradient.values = c.forward.values;
    for (Bytes& result : run_reference(c.forward)) c.gradient.values.push_back(std::move(result));
    c.gradient.complete(7);
    CHECK(is_by_library(c.gradient));
    check_on_gpu(c.gradient, run_reference(c.gradient));
  }
}

DEVICE_TEST_CASE("a deterministic gradient of attention has the same bits in each run", "[cuda][kernels][libraries]") {
  AttentionCase c = attention_of({2, 384, 2, 64}, 384, true, true);
  c.forward.complete(7);
  c.gradient.values = c.forward.values;
  for (Bytes& result : run_reference(c.forward)) c.gradient.values.push_back(std::move(result));
  c.gradient.complete(7);
  run_apart(to_string(c.gradient), [&] {
    const std::vector<Bytes> first = run_on_gpu(c.gradient);
    for (int i = 0; i < 8; ++i) CHECK((run_on_gpu(c.gradient) == first));
  });
}

TEST_CASE("what a library's attention lacks, our own kernels carry out", "[cuda]") {
  const auto is_taken = [](const KernelCase& given) {
    KernelCase c = given;
    c.infer_results();
    return is_by_library(c);
  };
  const AttentionCase taken = attention_of({2, 256, 4, 64}, 256, true);
  CHECK(is_taken(taken.forward));
  CHECK(is_taken(taken.gradient));
  for (const Shape& q : {Shape{2, 130, 4, 64}, {2, 64, 4, 64}, {2, 256, 4, 60}, {2, 256, 4, 136}}) {
    CHECK_FALSE(is_taken(attention_of(q, q[1], true).forward));
    CHECK_FALSE(is_taken(attention_of(q, q[1], true).gradient));
  }
  CHECK_FALSE(is_taken(attention_of({2, 256, 4, 64}, 130, false).forward));
  KernelCase other = taken.forward;
  for (Type& type : other.operands) type.dtype = DType::f32;
  CHECK_FALSE(is_taken(other));
  other = taken.forward;
  other.operands[1].shape[2] = other.operands[2].shape[2] = 2;  // two heads of q read one of k
  CHECK_FALSE(is_taken(other));
  const Type real{DType::f32, {}, {}};
  other = taken.forward;
  other.operands.insert(other.operands.end(), {draws_key, {DType::i64, {2}, {}}, real, real});
  CHECK_FALSE(is_taken(other));
  other = taken.gradient;
  other.operands.push_back(other.operands[4]);  // a cotangent of lse
  CHECK_FALSE(is_taken(other));
  other = taken.forward;
  other.devices = 3;
  CHECK(is_taken(other));
  other.stacked = {true, false, true};
  CHECK_FALSE(is_taken(other));
}

TEST_CASE("a library's attention is called for as many examples as its workspace allows", "[cuda]") {
  const auto call_of = [](const Shape& q, bool deterministic) {
    KernelCase c = attention_of(q, q[1], true, deterministic).gradient;
    c.infer_results();
    const GpuKernel kernel = make_gpu_kernel(c.op, c.request());
    const GpuAttention* const call = kernel.find<GpuAttention>();
    return call == nullptr ? std::pair<std::int64_t, std::int64_t>{0, 0} : std::pair{call->calls, call->examples};
  };
  CHECK(call_of({32, 1024, 12, 64}, false) == std::pair<std::int64_t, std::int64_t>{1, 32});
  CHECK(call_of({256, 1024, 12, 64}, false) == std::pair<std::int64_t, std::int64_t>{4, 64});
  CHECK(call_of({32, 1024, 12, 64}, true) == std::pair<std::int64_t, std::int64_t>{2, 16});
  CHECK(call_of({1, 8192, 12, 64}, true) == std::pair<std::int64_t, std::int64_t>{0, 0});  // our own kernels
  const GpuAttention call{GpuAttention::Kind::gradient, 4, 1024, 1024, 12, 64, true, true};
  CHECK(attention_workspace(call) == (std::size_t{1} << 20) + std::size_t{4} * 12 * 1024 * (8 + 2 * 1024));
}
